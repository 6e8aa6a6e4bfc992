"""The manifests of docker/kubernetes: what they grant, and that an API server takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from demo.kubernetes_api import PROGRAM, KubernetesApi
from streamwarden.base.config import Config
from streamwarden.base.paths import PROJECT_ROOT

from spark_apps.sources.kube import client, strimzi
from tests.docker.documented import block

BASE = PROJECT_ROOT / "docker/kubernetes/base"
VALUES = PROJECT_ROOT / "docker/kubernetes/airflow-values.yaml"


def manifests() -> list[dict[str, Any]]:
    names = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    return [one for name in names for one in yaml.safe_load_all((BASE / name).read_text())]


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = (one for one in manifests() if one["kind"] == kind)
    return found


def test_the_role_grants_what_is_listed_and_nothing_else() -> None:
    rules = of_kind("ClusterRole")["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    granted = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
    listed = {("", name) for name in (*client._CORE, *client._OF_CLUSTER)}
    listed |= {(strimzi.GROUP, name) for name in strimzi.KINDS.values()}
    assert granted == listed | {("monitoring.coreos.com", name) for name in ("podmonitors", "servicemonitors")}


def test_the_documented_role_is_that_of_the_manifest() -> None:
    assert yaml.safe_load(block("rbac-read")) == of_kind("ClusterRole")


def test_the_config_and_the_values_name_the_same_resources() -> None:
    assert Config.model_validate(yaml.safe_load((BASE / "streamwarden.yaml").read_text())).kubernetes[0].in_cluster
    values = yaml.safe_load(VALUES.read_text())
    account = of_kind("ServiceAccount")["metadata"]["name"]
    assert values["scheduler"]["serviceAccount"] == {"create": False, "name": account}
    (generated,) = yaml.safe_load((BASE / "kustomization.yaml").read_text())["configMapGenerator"]
    config, reports = values["volumes"]
    assert config["configMap"]["name"] == generated["name"] == "streamwarden"
    claim = of_kind("PersistentVolumeClaim")
    assert reports["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]  # the scheduler writes, the API server reads
    mounts = {mount["name"]: Path(mount["mountPath"]) for mount in values["volumeMounts"]}
    assert set(mounts) == {config["name"], reports["name"]}
    assert mounts[reports["name"]] == Path(values["config"]["core"]["dags_folder"]).parent / Config().reports.folder
    pod = of_kind("Job")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM.exists(), reason="make kubernetes-api builds the API server")
def test_an_api_server_takes_the_manifests(tmp_path: Path) -> None:
    with KubernetesApi(tmp_path) as api:
        api.apply(*manifests())
        job = of_kind("Job")
        assert api.http.get(f"{api.path(job)}/{job['metadata']['name']}").status_code == 200
