"""Lists of the Kubernetes API from servers that are busy, slow to end, or no API server at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from streamwarden.base.bounded_http import Limits
from streamwarden.base.config import Config, KubernetesCluster

from spark_apps.sources.kube import client, discover
from spark_apps.sources.kube.client import Lists, Unlisted
from spark_apps.sources.kube.objects import pod_of
from spark_apps.sources.targets import jvms_of
from tests.answering import answering

Answer = tuple[int, bytes]
PODS = json.dumps({"kind": "PodList", "metadata": {}, "items": [{"metadata": {"name": "p"}}]}).encode()


@pytest.fixture
def lists(tmp_path: Path) -> Iterator[Callable[..., Lists]]:
    """Lists from a server that gives these answers, one after the other, the last one again and again."""
    running = ExitStack()

    def served(*answers: Answer) -> Lists:
        left = list(answers)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = left.pop(0) if len(left) > 1 else left[0]
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                """Not on stderr."""

        server = running.enter_context(answering(ThreadingHTTPServer(("127.0.0.1", 0), Handler)))
        return Lists(KubernetesCluster(name="k", kubeconfig=kubeconfig(tmp_path, server.server_port)))

    with running:
        yield served


def kubeconfig(folder: Path, port: int) -> Path:
    file = folder / "kubeconfig"
    content = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "c", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    file.write_text(yaml.safe_dump(content))
    return file


def test_a_busy_server_is_asked_again(lists: Callable[..., Lists]) -> None:
    assert len(lists((429, b"{}"), (503, b"{}"), (200, PODS)).core("pods", "a")) == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((404, b"404 page not found"), "the API server failed to list pods in namespace a: 404 Not Found."),
        ((503, b"{}"), "the API server failed to list pods in each of 3 attempts (503)"),
        ((410, b"{}"), "the list of pods expired 3 times"),
        ((200, b"<html>login</html>"), "the list of pods is not one of the Kubernetes API"),
        ((200, b"[]"), "the list of pods is not one of the Kubernetes API"),
        ((418, b"x" * 5000), "the API server failed to list pods in namespace a: 418"),
    ],
)
def test_what_fails_is_one_sentence(lists: Callable[..., Lists], answer: Answer, reason: str) -> None:
    with pytest.raises(Unlisted) as error:
        lists(answer).core("pods", "a")
    assert str(error.value).startswith("failed: ") and reason in str(error.value)


@pytest.mark.parametrize("status", [200, 500])
def test_a_response_is_read_up_to_the_limit(
    lists: Callable[..., Lists], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(client, "LIMITS", Limits(max_bytes=2**20))
    with pytest.raises(Unlisted, match="response exceeds 1 MiB; set `namespaces`"):
        lists((status, b" " * (2**20 + 1))).core("pods", "a")


def test_more_objects_than_the_limit_are_a_gap(lists: Callable[..., Lists], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_OBJECTS", 5)
    endless = json.dumps({"metadata": {"continue": "t"}, "items": [{"metadata": {}}] * 2}).encode()
    with pytest.raises(Unlisted, match="more than 5 objects"):
        lists((200, endless)).core("pods", "a")


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Unlisted, match="no response from the API server"):
        Lists(KubernetesCluster(name="k", kubeconfig=kubeconfig(tmp_path, 9))).core("pods", "a")


def test_an_object_that_is_no_pod_is_refused() -> None:
    with pytest.raises(KeyError):
        pod_of({"metadata": {"name": "p"}})


@pytest.mark.parametrize(
    ("resource", "item"),
    [
        ("nodes", {"spec": {}}),
        ("persistentvolumes", {}),
        ("podmonitors", {"spec": {"selector": {"matchExpressions": [{"key": "a"}]}}}),
        ("podmonitors", "monitor"),
    ],
)
def test_an_object_of_another_form_is_a_gap_of_its_kubernetes_cluster(
    resource: str, item: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = {
        "metadata": {"namespace": "shop", "name": "p-0", "uid": "u"},
        "spec": {"nodeName": "n", "volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]},
    }
    found = {"pods": [pod], resource: [item]}

    class Api:
        def __init__(self, entry: KubernetesCluster) -> None:
            if entry.name == "down":
                raise Unlisted("failed: down.")

        def core(self, resource: str, *_: Any, **__: Any) -> list[Any]:
            return found.get(resource, [])

        def custom(self, _: str, __: Any, resource: str, ___: Any) -> list[Any]:
            return found.get(resource, [])

        def close(self) -> None: ...

    monkeypatch.setattr(discover, "Lists", Api)
    discover._discover.cache_clear()
    clusters = [{"name": name, "context": name, "selectors": {"apps": ["a=b"]}} for name in ("odd", "down")]
    gaps = discover.discover(Config.model_validate({"kubernetes": clusters})).gaps
    assert dict(gaps) == {"Kubernetes odd": discover._UNREADABLE, "Kubernetes down": "failed: down."}


def test_a_discovery_that_fails_is_a_gap_of_the_sources_that_read_its_pods(tmp_path: Path) -> None:
    """Otherwise the JVMs would be gone without a word, and a second run would delete the rows of the first."""
    clusters = [{"name": "down", "kubeconfig": str(kubeconfig(tmp_path, 9)), "selectors": {"apps": ["a=b"]}}]
    gaps = jvms_of(Config.model_validate({"kubernetes": clusters})).gaps
    assert {(gap.resource, gap.role) for gap in gaps} == {("Kubernetes down pods", None)}
    assert all("no response from the API server" in gap.reason for gap in gaps)
