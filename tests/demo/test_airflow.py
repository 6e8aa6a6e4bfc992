"""The demo's Airflow can be that of another virtual environment."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from demo.airflow import VENV_VARIABLE, Airflow
from streamwarden.base.errors import StreamwardenError


def test_an_environment_without_airflow_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VENV_VARIABLE, str(tmp_path))
    with pytest.raises(StreamwardenError, match=f"^{VENV_VARIABLE}: {tmp_path} has no Airflow$"):
        Airflow(SimpleNamespace(folder=tmp_path), port=0, metadata_url="postgresql://")


def test_the_programs_are_those_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text("#!/bin/sh\necho 3.1.8\n")
    (tmp_path / "bin" / "python").chmod(0o755)
    monkeypatch.setenv(VENV_VARIABLE, str(tmp_path))
    place = SimpleNamespace(folder=tmp_path, environment=dict)
    with_other = Airflow(place, port=0, metadata_url="postgresql://")
    assert with_other.version == "3.1.8"
    with_other._secrets = {}
    assert with_other.environment()["PATH"].split(":")[0] == str(tmp_path / "bin")
