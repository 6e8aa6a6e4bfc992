"""Blocks of docs/deploy.md by their label (the word behind the language), so that tests check what people copy."""

from __future__ import annotations

import re

from streamwarden.base.paths import PROJECT_ROOT

DEPLOY = PROJECT_ROOT / "docs" / "deploy.md"


def block(label: str) -> str:
    """The one code block that carries this label."""
    [found] = re.findall(rf"^```\w+ {label}\n(.*?)^```$", DEPLOY.read_text(), re.DOTALL | re.MULTILINE)
    return str(found)
