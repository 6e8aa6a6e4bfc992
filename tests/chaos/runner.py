"""Runs the hour as `streamwarden run` does, once for each line that it is given: Python and JVM stay warm in between.

{"hour": "…", "apps": ["…"]}  →  {"failed": {step: why}, "rows": {app: {table: n}}, "not_evaluated": {detector: why}}
"""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
from datetime import datetime

import psycopg
import sqlalchemy as sa
from streamwarden.base.config import load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.pipeline import one_line, run_hour


def main() -> None:
    """Until its input ends. SIGUSR1 has it write down where it stands."""
    faulthandler.register(signal.SIGUSR1)
    for line in sys.stdin:
        wanted = json.loads(line)
        try:
            run = run_hour(load_config(), datetime.fromisoformat(wanted["hour"]), wanted["apps"], lambda *_: None)
            said = {
                "failed": run.failed,
                "rows": run.rows,
                "not_evaluated": {one.detector: one.message for one in run.detector_runs if one.status != "evaluated"},
            }
        except (StreamwardenError, sa.exc.SQLAlchemyError, psycopg.Error) as error:  # one line of the command line
            said = {"failed": {"run": one_line(error)}}
        except Exception as error:
            said = {"failed": {"run": one_line(error)}, "traceback": type(error).__name__}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
