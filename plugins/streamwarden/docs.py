"""Generates docs/: a page per detector, causes, the data dictionary, the config reference; `--check` finds stale ones.

Everything comes from where it is said once: detector headers, the comments of a migrated warehouse, the config model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from streamwarden.base.catalog import APPS, WRITERS_OF
from streamwarden.base.config import Config
from streamwarden.base.paths import PROJECT_ROOT, SQL
from streamwarden.causes import rule
from streamwarden.charts.draw import load_plot
from streamwarden.detectors import Detector, load_detectors
from streamwarden.detectors.mechanisms import mechanisms
from streamwarden.store.dictionary import dictionary

FOLDER = PROJECT_ROOT / "docs"
_MADE = "<!-- Made by `streamwarden docs`; edit the source it names, not this page. -->\n\n"


def pages() -> dict[str, str]:
    """All generated pages: path below docs/ → text."""
    detectors = load_detectors()
    return {
        "detectors.md": _catalogue(detectors),
        **{f"detectors/{detector.id}.md": _detector_page(detector) for detector in detectors.values()},
        "causes.md": _causes_page(),
        "warehouse.md": _dictionary(),
        "config.md": _config_reference(),
    }


def stale_pages() -> list[str]:
    """Stale pages: files that differ from what would be generated now, or that have no page any more."""
    wanted = pages()
    stale = [name for name, text in wanted.items() if not _same(FOLDER / name, text)]
    return stale + [f"detectors/{f.name}" for f in _written_detectors() if f"detectors/{f.name}" not in wanted]


def write_pages() -> list[str]:
    """Writes stale pages and returns their names."""
    stale, wanted = stale_pages(), pages()
    for name in stale:
        file = FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(wanted[name]) if name in wanted else file.unlink()
    return [f"docs/{name}" for name in stale]


def _same(file: Path, text: str) -> bool:
    return file.exists() and file.read_text() == text


def _written_detectors() -> Iterator[Path]:
    return (FOLDER / "detectors").glob("*.md")


def _catalogue(detectors: dict[str, Detector]) -> str:
    lines = ["# Detectors\n\n", _MADE, "| detector | title | severity | maturity |\n|---|---|---|---|\n"]
    lines += [
        f"| [{d.id}](detectors/{d.id}.md) | {_cell(d.title)} | {d.severity} | {d.maturity} |\n"
        for d in detectors.values()
    ]
    return "".join(lines)


def _detector_page(detector: Detector) -> str:
    params = "".join(
        f"| `{name}` | {p.default} | {_cell(p.unit)} | {_cell(p.why)} |\n" for name, p in detector.params.items()
    )
    plot = SQL / "charts" / f"{detector.id}.sql"
    query = re.sub(r"^\s*/\*.*?\*/\s*", "", detector.sql, count=1, flags=re.DOTALL)
    picture = FOLDER / "pictures" / f"{detector.id}.svg"
    return "".join(
        [
            f"# {detector.id}\n\n",
            _MADE,
            f"**{detector.title}.** Severity {detector.severity}, {detector.maturity},"
            f" maintained by {detector.owner_role}.\n\n",
            f"![Example chart](../pictures/{picture.name})\n\n" if picture.exists() else "",
            f"{load_plot(plot)[0].why.strip()}\n\n" if plot.exists() and picture.exists() else "",
            f"- Evaluates each {detector.resource_kind} ({', '.join(f'`{column}`' for column in detector.identity)}).\n",
            f"- Opens a ticket after {detector.open_after_hours} firing h,"
            f" closes it after {detector.clear_after_hours} healthy h with data.\n",
            f"- Reads {', '.join(f'`{table}`' for table in detector.reads)},"
            f" collected by {', '.join(detector.apps) or 'no app'}.\n",
            f"- Chart: `sql/charts/{plot.name}`.\n" if plot.exists() else "",
            f"\n## How it decides\n\n{detector.description.strip()}\n" if detector.description else "",
            f"\n## Verdicts\n\n| reason | severity or status | message |\n|---|---|---|\n{_verdicts(detector)}",
            f"\n## Parameters\n\n| name | default | unit | reason |\n|---|---|---|---|\n{params}" if params else "",
            f"\n## Runbook\n\n{detector.runbook.strip()}\n",
            f"\n## Limitations\n\n{detector.limitations.strip()}\n",
            f"\n## SQL\n\n`{detector.file}`\n\n```sql\n{query.strip()}\n```\n",
        ]
    )


def _verdicts(detector: Detector) -> str:
    return "".join(
        f"| `{reason}` | {verdict.severity or verdict.status} | {_cell(verdict.message)} |\n"
        for reason, verdict in detector.verdicts.items()
    )


def _causes_page() -> str:
    params = "".join(f"| `{name}` | {p.default} | {p.unit} | {_cell(p.why)} |\n" for name, p in rule.params().items())
    paths = "".join(
        f"| `{name}` | {' → '.join(one.path)} | {one.parts} | {'contributes' if one.contributes else 'causes'} |\n"
        for name, one in mechanisms().items()
    )
    return "".join(
        [
            "# Causes\n\n",
            _MADE,
            f"{rule.description().strip()}\n\nThe config replaces parameters: `causes: {{params: {{name: value}}}}`.\n",
            f"\n## Parameters\n\n| name | default | unit | reason |\n|---|---|---|---|\n{params}",
            "\n## Mechanisms\n\n`sql/mechanisms.yaml` explains the columns.\n\n",
            f"| mechanism | path | parts | role |\n|---|---|---|---|\n{paths}",
        ]
    )


def _dictionary() -> str:
    known = dictionary()
    lines = ["# The warehouse: tables, views, columns, functions\n\n", _MADE]
    for relation, columns in groupby(
        known.columns, key=lambda column: (column.relation, column.kind, column.relation_comment)
    ):
        lines.append(
            _relation(*relation) + "".join(f"| `{c.name}` | {c.type} | {_cell(c.comment)} |\n" for c in columns)
        )
    lines.append("\n## Functions\n\n| function | returns | meaning |\n|---|---|---|\n")
    lines += [f"| `{f.name}({f.arguments})` | {_cell(f.result)} | {_cell(f.comment)} |\n" for f in known.functions]
    lines.append("\n## Apps\n\n| app | collects | reads | writes |\n|---|---|---|---|\n")
    lines += [f"| `{a.name}` | {a.title} | {', '.join(a.reads)} | {', '.join(a.writes)} |\n" for a in APPS.values()]
    return "".join(lines)


def _relation(name: str, kind: str, resource: str) -> str:
    apps = " and ".join(f"`{app}`" for app in WRITERS_OF.get(name, ()))
    written = f" Written by the app{'s' * (' ' in apps)} {apps}." if apps else " A view." if kind == "view" else ""
    return f"\n## {name}\n\n{resource}{written}\n\n| column | type | meaning |\n|---|---|---|\n"


def _config_reference() -> str:
    return "".join(
        ["# Config reference\n\n", _MADE, "Secrets: write `${NAME}`; it is read from the environment.\n"]
    ) + ("".join(_section("streamwarden.yaml", Config)))


def _section(title: str, model: type[BaseModel]) -> Iterator[str]:
    yield f"\n## {title}\n\n{(model.__doc__ or '').strip()}\n\n| key | type | default | meaning |\n|---|---|---|---|\n"
    below: list[tuple[str, type[BaseModel]]] = []
    for name, info in model.model_fields.items():
        path = f"{title.removeprefix('streamwarden.yaml')}.{name}".lstrip(".")
        kinds = list(_models_within(info.annotation))
        below += [(path if len(kinds) == 1 else f"{path}: {inner.__name__}", inner) for inner in kinds]
        yield f"| `{name}` | {_cell(_kind(info.annotation))} | {_default(info)} | {_cell(info.description or '')} |\n"
    for path, inner in below:
        yield from _section(path, inner)


def _models_within(annotation: Any) -> Iterator[type[BaseModel]]:
    """The sections that a key's values are: one, or one for each kind."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    else:
        for part in get_args(annotation):
            yield from _models_within(part)


def _kind(annotation: Any) -> str:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(args[0])
    if origin in (list, dict):
        return f"{'list' if origin is list else 'map'} of {_kind(args[-1])}"
    if args:
        return " or ".join(dict.fromkeys(_kind(arg) for arg in args if arg is not type(None)))
    if isinstance(annotation, type):
        names = {"str": "text", "int": "integer", "float": "number", "bool": "yes/no", "Path": "path"}
        return names.get(annotation.__name__, "section")
    return f"`{annotation}`" if isinstance(annotation, str) else "text"


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "**needed**"
    value = info.get_default(call_default_factory=True)
    return "" if value is None or isinstance(value, BaseModel) or value in ([], {}) else f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").strip()
