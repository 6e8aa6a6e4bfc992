"""Links of the documentation lead to files and headings that exist, on GitHub and on the documentation site.

Links to the network are not followed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
from streamwarden.base.paths import PROJECT_ROOT

PAGES = [*PROJECT_ROOT.glob("*.md"), *PROJECT_ROOT.glob("docs/**/*.md")]
_CODE = re.compile(r"^(```|~~~).*?^\1[^\n]*$|``.+?``|`[^`\n]+`", re.M | re.S)
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^(```|~~~).*?^\1[^\n]*$", "", page.read_text(), flags=re.M | re.S)
    found: Counter[str] = Counter()
    names = set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        names.add(f"{slug}-{found[slug]}" if found[slug] else slug)
        found[slug] += 1
    return names


def broken_links(page: Path) -> list[str]:
    """The relative links of a page without a file or heading."""
    broken = []
    for link in _LINK.findall(_CODE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT_ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two`\n[a](#one-two) [b](#three) [c](none.md) [d](https://x.org) `[e](none)`\n")
    assert broken_links(page) == ["#three", "none.md"]


@pytest.mark.rare
@pytest.mark.slow
def test_the_site_builds_without_a_broken_link() -> None:
    """Its Markdown is not GitHub's: a heading or an anchor may exist there alone."""
    zensical = Path(sys.executable).with_name("zensical")
    build = subprocess.run([zensical, "build", "--clean", "--strict"], cwd=PROJECT_ROOT, capture_output=True, text=True)
    assert build.returncode == 0, build.stdout + build.stderr
