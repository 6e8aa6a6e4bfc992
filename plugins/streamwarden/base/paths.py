"""Paths of shipped files (SQL, Spark apps) and of the user's files, in a checkout and in an installed wheel.

The wheel carries sql/ as `streamwarden/sql`, dags/ and the Airflow plugin as `streamwarden/airflow`.
"""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parents[1]
_IS_INSTALLED = (_PACKAGE / "sql").is_dir()

PROJECT_ROOT = Path(os.environ.get("STREAMWARDEN_HOME") or Path.cwd()) if _IS_INSTALLED else _CHECKOUT
"""Base of relative paths, including that of the config file: the checkout; in a wheel $STREAMWARDEN_HOME or the
current folder."""
SQL = (_PACKAGE if _IS_INSTALLED else _CHECKOUT) / "sql"
SPARK_APPS = (_PACKAGE.parent if _IS_INSTALLED else _CHECKOUT) / "spark_apps"


def named_in_config(path: Path) -> Path:
    """Path of a file that the config names: the user's file, else a shipped one (`sql/prices/ebs.csv`)."""
    own, shipped = PROJECT_ROOT / path, SQL.parent / path
    return own if own.exists() or not shipped.exists() else shipped
