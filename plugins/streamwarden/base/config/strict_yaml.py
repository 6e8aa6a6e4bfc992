"""Strict YAML: duplicate keys, numbers that are not finite, and alias bombs are errors.

Only `true` and `false` are Booleans. YAML 1.1 also takes `off`, `on`, `yes`, and `no` for Booleans, even as a key
(`off: true`) or a name. For a Boolean key they still work, because the model accepts these words.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import yaml

MAX_VALUES = 500_000
"""Limit of keys and values in a file, with aliases expanded. 10,000 JVMs need 150,000."""


def read_yaml(text: str) -> Any:
    """The parsed document. Raises yaml.YAMLError with the line of the problem."""
    try:
        return yaml.load(text, _Strict)  # noqa: S506 a safe loader, made stricter
    except RecursionError:
        raise yaml.YAMLError("the file is nested too deeply") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # PyYAML raises these for an invalid date, number, or Boolean: `2026-13-01`, `!!bool perhaps`.
        raise yaml.YAMLError(f"a value does not match its type: {error}") from None


class _Strict(yaml.SafeLoader):
    def get_single_node(self) -> yaml.Node | None:
        root = super().get_single_node()
        if root:
            _check(root)
        return root

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        value = super().construct_yaml_int(node)
        if abs(value) > sys.float_info.max:
            raise _refusal(node, f"{node.value[:20]}… is not a finite number")
        return value

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        value = super().construct_yaml_float(node)
        if value - value != 0:  # infinite, or NaN
            raise _refusal(node, f"{node.value} is not a finite number")
        return value


_BOOL = "tag:yaml.org,2002:bool"
_Strict.add_constructor("tag:yaml.org,2002:int", _Strict.construct_yaml_int)
_Strict.add_constructor("tag:yaml.org,2002:float", _Strict.construct_yaml_float)
_Strict.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Strict.add_implicit_resolver(_BOOL, re.compile("(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


def _check(root: yaml.Node) -> None:
    """Visits all values with aliases expanded; bombs and cycles reach the limit within a second."""
    left, count = [root], 0
    while left:
        node, count = left.pop(), count + 1
        if count > MAX_VALUES:
            raise _refusal(node, f"more than {MAX_VALUES:,} keys and values with aliases (*name) expanded")
        if isinstance(node, yaml.MappingNode):
            _refuse_duplicate_keys(node)
            left += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            left += node.value


def _refuse_duplicate_keys(mapping: yaml.MappingNode) -> None:
    first: dict[tuple[str, str], yaml.Node] = {}
    for key, _ in mapping.value:
        if isinstance(key, yaml.ScalarNode) and (before := first.setdefault((key.tag, key.value), key)) is not key:
            line = before.start_mark.line + 1
            raise _refusal(key, f"duplicate key '{key.value}', first on line {line}")


def _refusal(node: yaml.Node, why: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, why, node.start_mark)
