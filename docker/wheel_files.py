"""Adds files to the wheel besides its packages: SQL, DAGs, and the Airflow plugin, where `base/paths.py` expects them.

A hook and not `force-include` in pyproject.toml, which copies the files into an editable installation too, where they
grow old.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = {
    "sql": "streamwarden/sql",
    # For Airflow's dags_folder and plugins_folder.
    "dags": "streamwarden/airflow/dags",
    "plugins/streamwarden_plugin.py": "streamwarden/airflow/plugins/streamwarden_plugin.py",
}


class WheelFiles(BuildHookInterface[Any]):
    """Adds FILES to a wheel, and nothing to an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds; `version` is "standard" or "editable"."""
        if version == "standard":
            build_data["force_include"].update(FILES)
