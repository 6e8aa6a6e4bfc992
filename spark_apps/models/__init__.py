"""Models: figures made from figures, without Spark sessions, sources or tables; each can be tested on literals."""
