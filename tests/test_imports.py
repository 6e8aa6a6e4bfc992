"""The import contracts of pyproject.toml refuse an import across packages from every module."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import grimp
import pytest
from grimp import ImportGraph, Layer

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
LAYERS = [
    [f"streamwarden.{name.strip()}" for name in layer.split("|")]
    for layer in next(one for one in CONTRACTS if one["type"] == "layers")["layers"]
]
"""Highest first."""


@cache
def graph() -> ImportGraph:
    return grimp.build_graph("streamwarden", "spark_apps", cache_dir=None)


def package_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def modules() -> list[str]:
    return sorted(module for module in graph().modules if module.startswith("streamwarden."))


def illegal(imports: ImportGraph) -> bool:
    layers = [Layer(*packages) for packages in LAYERS]
    return bool(imports.find_illegal_dependencies_for_layers(layers))


def higher_than(module: str) -> Iterator[str]:
    """A package of each layer above a module's own, and its neighbors."""
    own = next(n for n, layer in enumerate(LAYERS) if package_of(module) in layer)
    yield from (layer[0] for layer in LAYERS[:own])
    yield from (package for package in LAYERS[own] if package != package_of(module))


def test_every_package_is_in_a_layer() -> None:
    known = {package for layer in LAYERS for package in layer}
    assert {package_of(module) for module in modules()} == known


def test_the_code_violates_no_layer() -> None:
    assert not illegal(graph())


@pytest.mark.parametrize("module", modules())
def test_an_import_from_a_higher_package_is_refused(module: str) -> None:
    for package in higher_than(module):
        assert not graph().direct_import_exists(importer=module, imported=package)
        graph().add_import(importer=module, imported=package)
        try:
            assert illegal(graph()), f"{module} may import {package}"
        finally:
            graph().remove_import(importer=module, imported=package)
