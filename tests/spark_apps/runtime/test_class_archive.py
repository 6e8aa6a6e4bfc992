"""The archive of classes is made while a machine is set up, when there is no warehouse yet."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV

from spark_apps.runtime.class_archive import _TRAINING, driver_java_options, java


@pytest.mark.slow
def test_what_it_is_made_with_runs_without_config_and_warehouse() -> None:
    training = _TRAINING.replace("frame.collect()", "frame.schema")  # planned, not run: half a minute less
    environment = {name: value for name, value in os.environ.items() if name not in (WAREHOUSE_ENV, CONFIG_ENV)}
    done = subprocess.run([sys.executable, "-c", training], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiled_well", [False, True])
def test_what_is_compiled_well_has_both_compilers(compiled_well: bool) -> None:
    flags = [*driver_java_options(compiled_well=compiled_well).split(), "-XX:+PrintFlagsFinal", "-version"]
    printed = subprocess.run([java(), *flags], capture_output=True, text=True, check=True).stdout
    stops_at = next(line.split()[3] for line in printed.splitlines() if " TieredStopAtLevel " in line)
    assert stops_at == ("4" if compiled_well else "1")
