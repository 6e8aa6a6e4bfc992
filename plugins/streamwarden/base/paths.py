"""Where things lie, in a checkout and in an installed wheel: what is shipped (SQL, Spark apps), and what is the user's.

The wheel carries sql/ as `streamwarden/sql`, dags/ and the Airflow plugin as `streamwarden/airflow`.
"""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parents[1]
_IS_INSTALLED = (_PACKAGE / "sql").is_dir()

PROJECT_ROOT = Path(os.environ.get("STREAMWARDEN_HOME") or Path.cwd()) if _IS_INSTALLED else _CHECKOUT
"""What the config file, and paths in it, are relative to: the checkout; of a wheel $STREAMWARDEN_HOME or the folder it
is run in."""
SQL = (_PACKAGE if _IS_INSTALLED else _CHECKOUT) / "sql"
SPARK_APPS = (_PACKAGE.parent if _IS_INSTALLED else _CHECKOUT) / "spark_apps"


def named_in_config(path: Path) -> Path:
    """A file that a config names: the user's, else the one of that name that is shipped (`sql/prices/ebs.csv`)."""
    own, shipped = PROJECT_ROOT / path, SQL.parent / path
    return own if own.exists() or not shipped.exists() else shipped
