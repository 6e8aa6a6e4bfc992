"""The class archive (CDS) is created during set-up of a host, before a warehouse exists."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV

from spark_apps.runtime.class_archive import _TRAINING, driver_java_options, java


@pytest.mark.slow
@pytest.mark.rare
def test_the_archive_is_created_without_config_and_warehouse() -> None:
    training = _TRAINING.replace("frame.collect()", "frame.schema")  # plans only, to save half a minute
    environment = {name: value for name, value in os.environ.items() if name not in (WAREHOUSE_ENV, CONFIG_ENV)}
    done = subprocess.run([sys.executable, "-c", training], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiled_well", [False, True])
def test_well_compiled_apps_use_both_jit_compilers(compiled_well: bool) -> None:
    flags = [*driver_java_options(compiled_well=compiled_well).split(), "-XX:+PrintFlagsFinal", "-version"]
    printed = subprocess.run([java(), *flags], capture_output=True, text=True, check=True).stdout
    stops_at = next(line.split()[3] for line in printed.splitlines() if " TieredStopAtLevel " in line)
    assert stops_at == ("4" if compiled_well else "1")
