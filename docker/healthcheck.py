"""Container health check through the API server: `healthcheck.py scheduler` exits 0 if that component is healthy.

One small request instead of `airflow jobs check`, which loads all of Airflow (5 CPU seconds) every time.
"""

from __future__ import annotations

import json
import os
import sys
from urllib.error import URLError
from urllib.request import urlopen


def status_of(component: str, api_server: str) -> str:
    """`healthy`, or the problem. Components: metadatabase, scheduler, triggerer, dag_processor."""
    try:
        with urlopen(f"{api_server}/api/v2/monitor/health", timeout=5) as answer:  # noqa: S310 our own address
            return json.load(answer).get(component, {}).get("status") or "it never reported to the database"
    except (URLError, TimeoutError, ValueError) as error:
        return f"the API server at {api_server} does not respond: {error}"


if __name__ == "__main__":
    found = status_of(sys.argv[1], os.environ.get("HEALTH_URL", "http://api-server:8080"))
    print(f"{sys.argv[1]}: {found}")
    sys.exit(found != "healthy")
