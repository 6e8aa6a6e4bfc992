"""The submit lines of docs/connect/spark.md and the settings of MWAA in docs/deploy.md: what APIs and programs take."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from streamwarden.base.catalog import APPS, TOGETHER
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV
from streamwarden.base.hours import parse_hour
from streamwarden.base.paths import PROJECT_ROOT

from tests.docker.documented import DEPLOY, block

VARIABLES = {CONFIG_ENV, WAREHOUSE_ENV}


def settings(label: str) -> dict[str, str]:
    """Of a spark-defaults.conf: name and value of each line."""
    return dict(line.split(maxsplit=1) for line in block(label).splitlines())


def test_emr_serverless_takes_the_documented_job() -> None:
    job: dict[str, Any] = json.loads(block("emr-serverless-job"))
    model = botocore.session.get_session().get_service_model("emr-serverless").operation_model("StartJobRun")
    missing = set(model.input_shape.required_members) - set(job)
    assert missing <= {"clientToken"}  # the AWS CLI fills it in
    report = ParamValidator().validate({**job, "clientToken": "x"}, model.input_shape)
    assert not report.has_errors(), report.generate_report()
    assert set(job) <= set(model.input_shape.members)


def test_the_documented_job_runs_an_app_with_config_and_warehouse_in_driver_and_executors() -> None:
    spark = json.loads(block("emr-serverless-job"))["jobDriver"]["sparkSubmit"]
    app, option, hour = spark["entryPointArguments"]
    assert app in {*APPS, TOGETHER}
    assert option == "--hour"
    parse_hour(hour)
    words = shlex.split(spark["sparkSubmitParameters"])
    assert set(words[::2]) == {"--conf"}
    conf = dict(word.split("=", 1) for word in words[1::2])
    for prefix in ("spark.emr-serverless.driverEnv.", "spark.executorEnv."):
        assert {*VARIABLES, "PYSPARK_PYTHON"} <= {name.removeprefix(prefix) for name in conf if name.startswith(prefix)}


@pytest.mark.parametrize("label", ["spark-yarn", "spark-kubernetes"])
def test_executors_get_config_and_warehouse(label: str) -> None:
    assert all(name.startswith("spark.") for name in settings(label))
    assert {*VARIABLES, "PYSPARK_PYTHON"} <= {name.rpartition(".")[2] for name in settings(label)}


def test_connections_are_those_that_the_operator_reads() -> None:
    text = (PROJECT_ROOT / "docs" / "connect" / "spark.md").read_text() + DEPLOY.read_text()
    found = re.findall(r"AIRFLOW_CONN_SPARK_DEFAULT='?(\{.*?\}\})", text)
    assert len(found) == 3
    for connection in map(json.loads, found):
        assert connection["conn_type"] == "spark"
        assert connection["extra"] == {"deploy-mode": "client", "spark-binary": "spark-submit"}


def test_mwaa_installs_the_wheel_of_this_version_by_its_constraints() -> None:
    constraint, wheel = block("mwaa-requirements").splitlines()
    version = re.search(r'^version = "(.*)"', (PROJECT_ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert constraint.startswith("--constraint ")
    assert wheel == f"/usr/local/airflow/plugins/streamwarden-{version[1]}-py3-none-any.whl[airflow]"
    assert {CONFIG_ENV, WAREHOUSE_ENV} <= set(re.findall(r"\b([A-Z_]+)=", block("mwaa-startup")))
