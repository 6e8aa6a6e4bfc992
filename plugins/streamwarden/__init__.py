"""The warehouse, the detectors, tickets, reports, pages in the Airflow UI, and the command line.

Packages import only those below them; pyproject.toml has their order.
"""
