"""The SQL files that make the schema: migrations in order, functions, and views; and the comments in them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from streamwarden.base.paths import SQL


def comments(text: str) -> Iterator[str]:
    """COMMENT ON statements for the `-- …` lines above each table, view, or function, and after each column."""
    heading: list[str] = []
    relation: tuple[str, str] | None = None
    view: tuple[str, str] | None = None  # its columns are those of the select that begins a line, not of CTEs
    for line in text.splitlines():
        if opened := re.match(
            r"(?:create (?:or replace )?|alter )(table|view|function) (?:if not exists )?([\w.]+)", line
        ):
            if heading and not line.startswith("alter"):
                yield _comment(f"{opened[1]} {opened[2]}", " ".join(heading))
            relation = (opened[1], opened[2]) if opened[1] == "table" else None
            view = (opened[1], opened[2]) if opened[1] == "view" else None
            heading = []
        elif line.startswith("select") and view:
            relation = view
        elif line.startswith("-- "):
            heading.append(line[3:].strip())
        elif relation and (column := _commented_column(line, relation[0])):
            yield _comment(f"column {relation[1]}.{column[0]}", column[1])
        elif not line.startswith(" "):
            heading = []
            relation = None if line.startswith((")", "from")) or not line.strip() else relation


def _commented_column(line: str, kind: str) -> tuple[str, str] | None:
    # A table's column begins with its name; a view's ends in it: `… as name,  -- comment`, `t.name,  -- comment`.
    found = re.match(r"  (?:add column )?(\w+) .*?-- (.+)$" if kind == "table" else r"  .*?(\w+),?\s+-- (.+)$", line)
    return (found[1], found[2].strip()) if found else None


def _comment(target: str, text: str) -> str:
    quoted = text.replace("'", "''")
    return f"comment on {target} is '{quoted}'"


def migration_files() -> list[Path]:
    """Files of migrations, in order."""
    return sorted((SQL / "migrations").glob("*.sql"))


def replaceable_files() -> list[Path]:
    """Files of functions, then of views, each after those that it reads."""
    made_by = {view: file for file in sorted((SQL / "views").glob("*.sql")) for view in views_in(file)}
    reads = {
        file: {made_by[name] for name in re.findall(r"\w+\.\w+", file.read_text()) if name in made_by} - {file}
        for file in made_by.values()
    }
    return [*sorted((SQL / "functions").glob("*.sql")), *TopologicalSorter(reads).static_order()]


def views_in(file: Path) -> list[str]:
    """Names of the views that a file creates."""
    return re.findall(r"^create (?:or replace )?view ([\w.]+)", file.read_text(), re.MULTILINE)


def functions_in(file: Path) -> list[str]:
    """Names of the functions that a file creates."""
    return re.findall(r"^create (?:or replace )?function ([\w.]+)", file.read_text(), re.MULTILINE)


def functions_of_migrations() -> set[str]:
    """Functions that migrations created before they had their own files."""
    return {f"function {name}" for file in migration_files() for name in functions_in(file)}


def retired_files() -> set[str]:
    """Names of deleted files, from sql/retired.txt."""
    lines = (SQL / "retired.txt").read_text().splitlines()
    return {line.split()[0] for line in lines if line.strip()[:1] not in ("", "#")}


def name_of(file: Path) -> str:
    """Folder and name of a file: `views/volumes.sql`."""
    return f"{file.parent.name}/{file.name}"


def file_named(name: str) -> Path:
    """The file with this name (`name_of`), whether or not it exists."""
    return SQL / name


def checksum_of(file: Path) -> str:
    """SHA-256 of the content of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
