"""Runs hours as `streamwarden run` does for each line of its input; Python and the JVM stay warm between them.

Input: {"hours": ["…"], "apps": ["…"]}
Output: {"failed": {step: message}, "not_evaluated": {detector: message}}
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
    """Reads and answers lines until the input ends. SIGUSR1 prints the stack traces of all threads."""
    faulthandler.register(signal.SIGUSR1)
    for line in sys.stdin:
        wanted = json.loads(line)
        try:
            answer: dict[str, dict[str, str]] = {"failed": {}, "not_evaluated": {}}
            for hour in wanted["hours"]:
                run = run_hour(load_config(), datetime.fromisoformat(hour), wanted["apps"], lambda *_: None)
                answer["failed"] |= run.failed
                answer["not_evaluated"] |= {
                    one.detector: one.message for one in run.detector_runs if one.status != "evaluated"
                }
        except (StreamwardenError, sa.exc.SQLAlchemyError, psycopg.Error) as error:  # one line of the command line
            answer = {"failed": {"run": one_line(error)}}
        except Exception as error:
            answer = {"failed": {"run": one_line(error)}, "traceback": {"kind": type(error).__name__}}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
