"""Streamwarden acts here: warehouse, detectors' runner, tickets, reports, Airflow pages and the command line.

Rooms, each importing only those below it: `cli`, `ui`, `pipeline`, `operators` · `reports` · `tickets` · `plots` ·
`graph` · `detectors` · `words`, `store` · `base`.
"""
