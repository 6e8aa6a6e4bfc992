"""The query that ranks causes: `sql/causes/weigh.sql`, its parameters, and the pieces that it reads.

Each file in `sql/causes/weigh/` is one select. The query is the select of `weigh.sql` with each of these as a common
table expression of the file's name. Pieces are materialized: most are read more than once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from streamwarden.base.config import Config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.detectors.load import Parameter, ParameterValue, replaced_params
from streamwarden.detectors.select import parameters, tokens
from streamwarden.store.sql_header import read_header, shown

MAIN = SQL / "causes" / "weigh.sql"
PIECES = SQL / "causes" / "weigh"
_BOUND = {"hour", "mechanisms", "causes", "effects"}
"""Parameters of the query that `weigh` binds itself."""
_NO_THRESHOLDS = ("0", "1", "100")
_INTERVALS = ("1 hour", "1 minute")


def query(texts: Mapping[str, str] | None = None) -> str:
    """The whole query. `texts`: SQL by file name that replaces the contents of files, to try a change."""
    changed = texts or {}
    pieces = [
        f"{file.stem} as materialized (\n{changed.get(file.name, file.read_text()).rstrip()}\n)"
        for file in sorted(PIECES.glob("*.sql"))
    ]
    main = changed.get(MAIN.name, read_header(MAIN)[1]).partition("*/")[2]
    return f"with recursive {', '.join(pieces)}{main}"


@cache
def params() -> dict[str, Parameter]:
    """The parameters in the header, by name.

    Raises:
        StreamwardenError: the header's parameters are not those that the SQL uses; one line.
    """
    header, _ = read_header(MAIN)
    try:
        found = TypeAdapter(dict[str, Parameter]).validate_python(header.get("params", {}))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise StreamwardenError(f"{shown(MAIN)}: params.{key}: {first['msg']}") from None
    used = parameters(query()) - _BOUND
    if difference := used ^ set(found):
        name = min(difference)
        problem = "used in the SQL but not in the header" if name in used else "never used in the SQL"
        raise StreamwardenError(f"{shown(MAIN)}: params.{name}: {problem}.")
    return found


def description() -> str:
    """Markdown description of the ranking, from the header."""
    return str(read_header(MAIN)[0]["description"])


def params_in_force(config: Config | None = None) -> dict[str, ParameterValue]:
    """Defaults with the config's overrides.

    Raises:
        StreamwardenError: as `with_params`.
    """
    return with_params({}, config.causes.params if config else {}, "causes.params.")


def with_params(
    values: Mapping[str, ParameterValue], replaced: Mapping[str, ParameterValue], key: str
) -> dict[str, ParameterValue]:
    """All parameters: the defaults, overridden by `values`, overridden by `replaced`.

    Args:
        key: prefix of a parameter's name in errors.

    Raises:
        StreamwardenError: unknown name, a value that is negative or not a number, or 0 as a divisor.
    """
    defaults = {name: parameter.default for name, parameter in params().items()}
    found = replaced_params("causes", params(), {**defaults, **values}, replaced, key)
    for name in re.findall(r"/ :(\w+)", query()):
        if found[name] == 0:
            raise StreamwardenError(f"{key}{name}: must be more than 0.")
    return found


def bare_constants() -> Iterator[str]:
    """A line `file:line: …` for each constant in the SQL of causes, except 0, 1, 100. Thresholds are parameters."""
    for file in (MAIN, *sorted(PIECES.glob("*.sql"))):
        yield from bare_constants_in(file, file.read_text())


def bare_constants_in(file: Path, text: str) -> Iterator[str]:
    """`bare_constants` of one file's text."""
    begins = text.find("*/") + 2 if text.lstrip().startswith("/*") else 0
    before = ""
    for token in tokens(text):
        is_interval = token.kind == "string" and before == "interval"
        before = token.text.lower()
        if token.start < begins:
            continue
        is_number = token.kind == "word" and re.fullmatch(r"\d[\d_]*(\.\d+)?(e\d+)?", before)
        if (is_number and before not in _NO_THRESHOLDS) or (is_interval and token.text[1:-1] not in _INTERVALS):
            line = text.count("\n", 0, token.start) + 1
            yield f"{shown(file)}:{line}: {token.text}: a bare constant; name it in the params of {shown(MAIN)}."
