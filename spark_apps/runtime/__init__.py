"""How an app runs: Spark's session, its start made cheap, rows in and out of the warehouse."""
