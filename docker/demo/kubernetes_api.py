"""A real Kubernetes API server with its etcd, without kubelet and controllers: for tests and the demo.

`make kubernetes-api` builds it from the published Go modules into var/kubernetes: some minutes, once.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT

from demo.process import Process, free_port

SOURCES = Path(__file__).with_name("kubernetes_server")
PROGRAM = PROJECT_ROOT / "var" / "kubernetes" / "kube-apiserver"
BUILD_SECONDS, READY_SECONDS, STOP_SECONDS = 3600, 120, 20
ADMIN = "admin-of-the-test"
_PLURALS = {"NetworkPolicy": "networkpolicies"}
_OF_CLUSTER = {
    "Node", "PersistentVolume", "Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition",
    "StorageClass",
}  # fmt: skip
Object = dict[str, Any]


def build() -> Path:
    """The program, built where it is missing.

    Raises:
        StreamwardenError: Go is missing, or the build failed.
    """
    if PROGRAM.exists():
        return PROGRAM
    if shutil.which("go") is None:
        raise StreamwardenError("the Kubernetes API server is built by Go 1.24 or newer: install it, or set PATH")
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    part = PROGRAM.with_suffix(".part")
    command = ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(part), "."]
    done = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    if done.returncode:
        raise StreamwardenError(f"the Kubernetes API server was not built: {done.stderr.strip()[-500:]}")
    part.rename(PROGRAM)
    return PROGRAM


class KubernetesApi:
    """A running API server. Its users are tokens of a file; RBAC decides what they may do."""

    def __init__(self, folder: Path, users: dict[str, str] | None = None) -> None:
        """`users`: names by token; ADMIN may do everything."""
        self.folder = folder
        self.port, self.etcd_port = free_port(), free_port()
        self._users = {ADMIN: "admin"} | (users or {})
        self._process: Process | None = None

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        tokens = "".join(
            f"{token},{name},{name}{',system:masters' if token == ADMIN else ''}\n"
            for token, name in self._users.items()
        )
        (self.folder / "tokens.csv").write_text(tokens)
        key = self.folder / "service-accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        self._process = Process("kube-apiserver", [str(build()), *self._arguments(key)], self.folder).start()
        try:
            self._await_ready(self._process)
        except BaseException:
            self._process.stop()
            raise
        self.http = httpx.Client(
            base_url=self.url, verify=str(self.authority), headers={"Authorization": f"Bearer {ADMIN}"}, timeout=30
        )
        return self

    def _arguments(self, key: Path) -> list[str]:
        return [
            str(self.folder / "etcd"), str(self.etcd_port), f"--secure-port={self.port}", "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder / 'certificates'}", f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.96.0.0/16", "--disable-admission-plugins=ServiceAccount",
            "--allow-privileged=true", "--feature-gates=ListFromCacheSnapshot=false",  # continued lists come from etcd
        ]  # fmt: skip

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.stop(STOP_SECONDS)

    def check(self) -> None:
        """Raises with the relevant line of the log if the server has ended."""
        if self._process is not None:
            self._process.check()

    @property
    def url(self) -> str:
        """Address of the API."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def authority(self) -> Path:
        """Certificate of the server."""
        return self.folder / "certificates" / "apiserver.crt"

    def _await_ready(self, process: Process) -> None:
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            process.check()
            try:
                headers = {"Authorization": f"Bearer {ADMIN}"}
                with httpx.Client(verify=str(self.authority), headers=headers, timeout=5) as client:
                    if client.get(f"{self.url}/readyz").text == "ok":
                        return
            except (httpx.HTTPError, OSError):
                pass
            time.sleep(0.1)
        raise StreamwardenError(
            f"the Kubernetes API server did not start within {READY_SECONDS} s (whole log: {process.log})"
        )

    def kubeconfig(self, token: str = ADMIN, *, name: str = "kubeconfig") -> Path:
        """A kubeconfig file for one of the users, with the context `test`."""
        file = self.folder / name
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        file.write_text(yaml.safe_dump(content))
        return file

    def apply(self, *objects: Object) -> None:
        """Creates objects, or replaces those that exist; unknown fields are refused. Their status is written too."""
        for one in objects:
            self._apply(one)

    def _apply(self, one: Object) -> None:
        strict = {"fieldValidation": "Strict"}
        path, name = self.path(one), one["metadata"]["name"]
        answer = self.http.post(path, params=strict, json=one)
        if answer.status_code == 409:
            if one["kind"] in ("Namespace",):
                return
            old = self.http.get(f"{path}/{name}").json()
            version = {"resourceVersion": old["metadata"]["resourceVersion"]}
            body = one | {"metadata": one["metadata"] | version}
            if one["kind"] != "Pod":  # nearly all of a pod's spec is immutable
                answer = self.http.put(f"{path}/{name}", params=strict, json=body)
        if answer.status_code not in (200, 201, 409):
            raise StreamwardenError(f"{one['kind']} {name}: {answer.status_code} {answer.json().get('message')}")
        if "status" in one:
            now = self.http.get(f"{path}/{name}").json()
            answer = self.http.put(f"{path}/{name}/status", params=strict, json=now | {"status": one["status"]})
            if answer.status_code != 200:
                raise StreamwardenError(f"{one['kind']} {name}: {answer.status_code} {answer.json().get('message')}")
        if one["kind"] == "CustomResourceDefinition":
            self._await_established(f"{path}/{name}", one)

    def _await_established(self, path: str, one: Object) -> None:
        until = time.monotonic() + READY_SECONDS
        group, version = one["spec"]["group"], one["spec"]["versions"][0]["name"]
        while time.monotonic() < until:
            conditions = self.http.get(path).json().get("status", {}).get("conditions") or ()
            is_served = self.http.get(f"/apis/{group}/{version}/{one['spec']['names']['plural']}").status_code == 200
            if is_served and any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                return
            time.sleep(0.05)
        raise StreamwardenError(f"{path} is not served")

    def delete(self, one: Object) -> None:
        """Deletes an object at once."""
        answer = self.http.request(
            "DELETE", f"{self.path(one)}/{one['metadata']['name']}", json={"gracePeriodSeconds": 0}
        )
        answer.raise_for_status()

    @staticmethod
    def path(one: Object) -> str:
        """Path of the collection that an object belongs to."""
        group, _, version = one["apiVersion"].rpartition("/")
        plural = _PLURALS.get(one["kind"]) or f"{one['kind'].lower()}{'es' if one['kind'].endswith('ss') else 's'}"
        base = f"/apis/{group}/{version}" if group else f"/api/{version}"
        if one["kind"] in _OF_CLUSTER:
            return f"{base}/{plural}"
        return f"{base}/namespaces/{one['metadata'].get('namespace', 'default')}/{plural}"

    def forget_history(self) -> None:
        """Compacts etcd, after which tokens to continue an earlier list have expired."""
        with httpx.Client(base_url=f"http://127.0.0.1:{self.etcd_port}", timeout=10) as etcd:
            found = etcd.post("/v3/kv/range", content=json.dumps({"key": "AA=="})).raise_for_status().json()
            body = json.dumps({"revision": found["header"]["revision"], "physical": True})
            etcd.post("/v3/kv/compaction", content=body).raise_for_status()


def main() -> int:
    """Builds the program."""
    try:
        print(build())
    except StreamwardenError as error:
        print(f"demo.kubernetes_api: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
