"""Jinja environments for Streamwarden's own pages and texts, and for the templates in detectors' headers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from streamwarden.base.errors import StreamwardenError
from streamwarden.rendering.commands import changing, reading
from streamwarden.rendering.metric import Metric
from streamwarden.rendering.readable import clean, counted, moment, open_span, readable, since_text, span

_HOUSE: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}


def _of_raw(function: Callable[..., str]) -> Callable[..., str]:
    """Makes a filter accept metrics as well as raw values."""
    return lambda value, *args: function(value.value if isinstance(value, Metric) else value, *args)


def _plural(number: float, one: str, many: str) -> str:
    return one if number == 1 else many


def _listed(values: Any, key: str | None = None, most: int = 3) -> str:
    """The first few of a list of metrics, or of a key of its entries: `a, b, c, and 4 more`."""
    entries = [str(entry[key] if key else entry) for entry in values]
    shown, more = entries[:most], len(entries) - most
    if more > 0:
        return f"{', '.join(shown)}, and {more:,} more"
    return " and ".join(shown) if len(shown) < 3 else f"{', '.join(shown[:-1])}, and {shown[-1]}"


_FILTERS = {
    "clean": clean, "counted": _of_raw(counted), "moment": _of_raw(moment), "span": _of_raw(span),
    "open_span": _of_raw(open_span), "since_text": since_text, "plural": _of_raw(_plural), "listed": _listed,
    "reading": reading, "changing": changing, "words": lambda name: str(name).replace("_", " "),
    "label": lambda column: readable(column, None)[0],
}  # fmt: skip


def folder_templates(folder: Path, **filters: Any) -> jinja2.Environment:
    """Jinja environment of a folder of templates. `.html` is escaped; the caller escapes other formats."""
    loader = jinja2.FileSystemLoader(folder)
    environment = jinja2.Environment(loader=loader, autoescape=jinja2.select_autoescape(["html"]), **_HOUSE)
    environment.filters |= _FILTERS | filters
    return environment


def render_text(template: str, values: Mapping[str, Any]) -> str:
    """Renders a template of a detector's header on one line.

    Raises:
        StreamwardenError: the template is invalid or uses an undefined name.
    """
    return " ".join(_filled(_SENTENCES, template, values).split())


def commands(template: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Renders shell commands, one per line: metrics as raw values, quoted for the shell. Raises as `render_text`.

    A template has one command; a line break in a loop makes one of each turn. Values are cleaned of line breaks.
    """
    lines = _filled(_COMMANDS, template, values).splitlines()
    return tuple(line for each in lines if (line := " ".join(each.split())))


@lru_cache(maxsize=4000)
def names_in(template: str) -> frozenset[str]:
    """Names of the variables that a template uses. Headers share many texts, so each is parsed once.

    Raises:
        StreamwardenError: the template is invalid.
    """
    return frozenset(jinja2.meta.find_undeclared_variables(_parsed(template)))


def outline(template: str) -> str:
    """A template as people read it: `[words of the column]` for a value, and both texts of a choice.

    >>> outline("{{ topics | plural('has', 'have') }} {{ 'no' if idle else lag_bytes }}")
    'have no / [lag bytes]'

    Raises:
        StreamwardenError: the template is invalid.
    """
    return " ".join(_outlined(_parsed(template)).split())


def _parsed(template: str) -> nodes.Template:
    try:
        return _SENTENCES.parse(template)
    except jinja2.TemplateError as error:
        raise StreamwardenError(f"{' '.join(template.split())[:60]!r}: {error}") from None


def _outlined(node: nodes.Node) -> str:
    match node:
        case nodes.TemplateData(data=text):
            return text
        case nodes.Const(value=value):
            return str(value)
        case nodes.Name(name=column):
            return f"[{column.replace('_', ' ')}]"
        case nodes.Filter(name="plural", args=[_, many]):
            return _outlined(many)
        case nodes.CondExpr(expr1=one, expr2=other) if other is not None:
            return f"{_outlined(one)} / {_outlined(other)}"
        case nodes.If(body=body, else_=others):
            return " / ".join("".join(map(_outlined, some)) for some in (body, others) if some)
        case nodes.Template(body=parts) | nodes.For(body=parts) | nodes.Output(nodes=parts) | nodes.Concat(nodes=parts):
            return "".join(map(_outlined, parts))
        case nodes.Or(left=inner) | nodes.BinExpr(left=inner):
            return _outlined(inner)
        case nodes.Filter(node=inner) | nodes.Getattr(node=inner) | nodes.Getitem(node=inner) if inner is not None:
            return _outlined(inner)
        case _:
            return "…"


def _filled(environment: jinja2.Environment, template: str, values: Mapping[str, Any]) -> str:
    try:
        return _compiled(environment, template).render(values)
    except (jinja2.TemplateError, TypeError, ZeroDivisionError) as error:
        raise StreamwardenError(f"{' '.join(template.split())[:60]!r}: {error}") from None


@lru_cache(maxsize=2000)
def _compiled(environment: jinja2.Environment, template: str) -> jinja2.Template:
    return environment.from_string(template)


def _quoted(value: Any) -> str:
    raw = value.value if isinstance(value, Metric) else value
    if isinstance(raw, float) and raw.is_integer():
        raw = int(raw)
    return shlex.quote(clean("" if raw is None else raw))


def _sandbox(**settings: Any) -> jinja2.Environment:
    environment = ImmutableSandboxedEnvironment(autoescape=False, **_HOUSE, **settings)
    environment.filters |= _FILTERS
    return environment


_SENTENCES = _sandbox()
_COMMANDS = _sandbox(finalize=_quoted)
