"""Fetches sets of jars from Maven Central, once, with the Ivy that pyspark ships: no Maven needed, no pyspark imported.

A set is a list of modules plus a lock file (sha256 of every jar, transitive ones too). Jars lie in
`$XDG_CACHE_HOME/streamwarden/jars/<set>/` and are only ever put there whole and verified, so a warm call just looks.
A mirror is named by an Ivy settings file in `$STREAMWARDEN_IVY_SETTINGS`.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from streamwarden.base.errors import StreamwardenError

from spark_apps.runtime.class_archive import java

SETTINGS_ENV = "STREAMWARDEN_IVY_SETTINGS"


@dataclass(frozen=True)
class JarSet:
    """Modules that are fetched together, as `group:artifact:version` or `group:artifact:version:classifier`."""

    name: str
    modules: tuple[str, ...]
    transitive: bool
    lock: Path

    @property
    def folder(self) -> Path:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "streamwarden" / "jars" / self.name

    def locked(self) -> dict[str, str]:
        """File name → sha256, as the lock has it."""
        lines = [line.split() for line in self.lock.read_text().splitlines()]
        return {path.removeprefix(f"{self.name}/"): sha for sha, path in lines if path.startswith(f"{self.name}/")}


def ensure(jars: JarSet) -> list[Path]:
    """Paths of the set's jars; missing ones are fetched and verified.

    Raises:
        StreamwardenError: Java is missing, Maven Central is not reachable, or a jar differs from the lock file.
    """
    locked = jars.locked()
    if not _is_there(jars.folder, locked):
        with _only_one(jars.folder):
            if not _is_there(jars.folder, locked):
                _fetch(jars, locked)
    return [jars.folder / name for name in locked]


def write_locks(*sets: JarSet) -> None:
    """Resolves the sets again and writes their lock files; for whoever raises a version."""
    for lock in dict.fromkeys(jars.lock for jars in sets):
        lines: list[str] = []
        for jars in (jars for jars in sets if jars.lock == lock):
            with TemporaryDirectory() as work:
                resolved = _resolve(jars, Path(work))
                lines += [f"{_sha256(path)}  {jars.name}/{path.name}" for path in sorted(resolved)]
        lock.write_text("\n".join(lines) + "\n")


def _is_there(folder: Path, locked: dict[str, str]) -> bool:
    return folder.is_dir() and {path.name for path in folder.iterdir()} == locked.keys()


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Two sessions that start at once must not fetch into each other."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _fetch(jars: JarSet, locked: dict[str, str]) -> None:
    with TemporaryDirectory(dir=jars.folder.parent, prefix=f".{jars.name}-") as work:
        found = {path.name: _sha256(path) for path in _resolve(jars, Path(work))}
        wrong = sorted(name for name in found.keys() | locked.keys() if found.get(name) != locked.get(name))
        if wrong:
            raise StreamwardenError(
                f"Jar set '{jars.name}': {', '.join(wrong[:3])} is not what {jars.lock.name} locks. "
                "Check the mirror; if a version was raised on purpose, run `python -m demo.jars --lock`."
            )
        shutil.rmtree(jars.folder, ignore_errors=True)
        (Path(work) / "jars").rename(jars.folder)


def _resolve(jars: JarSet, work: Path) -> list[Path]:
    """Lets Ivy (which checks Central's own checksums) put the jars into `work/jars`."""
    (work / "ivy.xml").write_text(_ivy_file(jars))
    settings = os.environ.get(SETTINGS_ENV)
    command = [java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.net.useSystemProxies=true"]
    command += ["-jar", _ivy_jar(), *(["-settings", settings] if settings else []), "-ivy", str(work / "ivy.xml")]
    command += ["-cache", str(work / "cache"), "-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{work}/jars/[artifact]-[revision](-[classifier]).[ext]"]
    run = subprocess.run(command, capture_output=True, text=True)
    found = list((work / "jars").glob("*.jar"))
    if run.returncode or not found:
        complaints = [line.strip(" :\t") for line in run.stdout.splitlines() if "not found" in line or "ERROR" in line]
        reason = complaints[0] if complaints else f"Ivy ended with code {run.returncode}"
        raise StreamwardenError(
            f"Jar set '{jars.name}' cannot be fetched from Maven Central: {reason}. "
            f"Check the network, or name a mirror with {SETTINGS_ENV}."
        )
    return found


def _ivy_file(jars: JarSet) -> str:
    wanted = "default->master,runtime" if jars.transitive else "default->master"
    lines = []
    for module in jars.modules:
        group, artifact, version, *classifier = module.split(":")
        chosen = (
            f'<artifact name="{artifact}" type="jar" ext="jar" m:classifier="{classifier[0]}"/>' if classifier else ""
        )
        lines.append(
            f'<dependency org="{group}" name="{artifact}" rev="{version}" conf="{wanted}" '
            f'transitive="{str(jars.transitive).lower()}">{chosen}</dependency>'
        )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        f'<info organisation="streamwarden" module="{jars.name}"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )


def _ivy_jar() -> str:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise StreamwardenError("pyspark is not installed: run `make setup`.")
    return str(next(Path(spec.submodule_search_locations[0], "jars").glob("ivy-*.jar")))


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
