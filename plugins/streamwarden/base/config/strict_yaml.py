"""YAML without what hides mistakes: a key that is there twice, a number that is none, aliases that grow without end.

Only `true` and `false` are truth values. YAML 1.1 takes `off`, `on`, `yes` and `no` for some as well, also where they
are a key (`off: true`) or a name; for a key that wants a truth value they still are: the model reads the words.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import yaml

MAX_VALUES = 500_000
"""Keys and values of a file, each alias counted as what it stands for. 10,000 JVMs take 150,000."""


def read_yaml(text: str) -> Any:
    """What the text holds. Raises yaml.YAMLError, with the line."""
    try:
        return yaml.load(text, _Strict)  # noqa: S506 a safe loader, made stricter
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # PyYAML's own words for a day, a number or a truth value that is none: `2026-13-01`, `!!bool perhaps`.
        raise yaml.YAMLError(f"a value isn't of its kind: {error}") from None


class _Strict(yaml.SafeLoader):
    def get_single_node(self) -> yaml.Node | None:
        root = super().get_single_node()
        if root:
            _check(root)
        return root

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        value = super().construct_yaml_int(node)
        if abs(value) > sys.float_info.max:
            raise _refusal(node, f"{node.value[:20]}… isn't a finite number")
        return value

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        value = super().construct_yaml_float(node)
        if value - value != 0:  # infinite, or no number
            raise _refusal(node, f"{node.value} isn't a finite number")
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
    """Looks at all values with aliases in full: bombs and circles reach the limit within a second."""
    left, count = [root], 0
    while left:
        node, count = left.pop(), count + 1
        if count > MAX_VALUES:
            raise _refusal(node, f"more than {MAX_VALUES:,} keys and values with its aliases (*name) in full")
        if isinstance(node, yaml.MappingNode):
            _refuse_a_key_twice(node)
            left += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            left += node.value


def _refuse_a_key_twice(mapping: yaml.MappingNode) -> None:
    first: dict[tuple[str, str], yaml.Node] = {}
    for key, _ in mapping.value:
        if isinstance(key, yaml.ScalarNode) and (before := first.setdefault((key.tag, key.value), key)) is not key:
            line = before.start_mark.line + 1
            raise _refusal(key, f"key '{key.value}' is there twice, first on line {line}")


def _refusal(node: yaml.Node, why: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, why, node.start_mark)
