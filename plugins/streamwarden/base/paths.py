"""Where the project's files lie: SQL, config and data folders are named relative to it."""

from pathlib import Path

PROJECT_ROOT = Path(__file__).resolve().parents[3]
