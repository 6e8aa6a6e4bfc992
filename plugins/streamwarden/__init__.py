"""Streamwarden acts here: warehouse, detectors' runner, tickets, reports, Airflow pages and the command line."""

from pathlib import Path

PROJECT_ROOT = Path(__file__).resolve().parents[2]
