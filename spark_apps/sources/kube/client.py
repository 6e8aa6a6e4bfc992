"""Lists of the Kubernetes API by its official client: paged, limited in bytes, objects, and seconds.

Lists are read in pages (`limit`, `continue`). A continue token that has expired (410 Gone) starts the list again, since
pages of two snapshots may contain a pod twice or not at all (Kubernetes API concepts, "Retrieving large results sets in
chunks"). What fails becomes a gap: one message for each kind of failure, naming the missing permission of RBAC.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from typing import Any

import urllib3
from kubernetes.client import ApiClient, Configuration, CoreV1Api, CustomObjectsApi
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException, load_incluster_config, new_client_from_config
from streamwarden.base.bounded_http import LIMITS, LimitExceeded, json_of
from streamwarden.base.config import KubernetesCluster

from spark_apps.sources.kube.objects import Item

PAGE_SIZE = 250
"""A pod takes 5 to 20 KB."""
MOST_OBJECTS = 50_000
LIST_SECONDS = 120
"""For all pages of a list."""
LOGIN_SECONDS = 30
"""For the kubeconfig's credential plugin, e.g. `aws eks get-token`."""
ATTEMPTS = 3
_CONNECT_SECONDS, _READ_SECONDS, _RESPONSE_SECONDS = 5, 20, 60
_PIECE = 2**16
_BUSY = (429, 500, 503, 504)
_CORE = {"pods": "pod", "services": "service", "persistentvolumeclaims": "persistent_volume_claim"}
_OF_CLUSTER = {"nodes": "node", "persistentvolumes": "persistent_volume"}


class NotInstalled(Exception):
    """The API server does not have this resource: its CustomResourceDefinition is not installed."""


class Unlisted(Exception):
    """A list failed; the message is `<status>: <sentence>`, as gaps have it."""


class Lists:
    """Lists of one Kubernetes cluster. Thread-safe."""

    def __init__(self, entry: KubernetesCluster) -> None:
        """Loads the credentials.

        Raises:
            Unlisted: the kubeconfig or the service account is not usable.
        """
        self.entry = entry
        self._client = _in_time(lambda: _client_of(entry), entry)
        self._client.rest_client.pool_manager = _Bounded(self._client.rest_client.pool_manager)  # type: ignore[assignment]
        self._core, self._custom = CoreV1Api(self._client), CustomObjectsApi(self._client)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def core(self, resource: str, namespace: str | None = None, selector: str | None = None) -> list[Item]:
        """Objects of the core API, e.g. `pods`, of a namespace or of all.

        Raises:
            Unlisted: the list failed.
        """
        if resource in _OF_CLUSTER:
            call = getattr(self._core, f"list_{_OF_CLUSTER[resource]}")
        elif namespace:
            of_namespace = getattr(self._core, f"list_namespaced_{_CORE[resource]}")
            call = lambda **options: of_namespace(namespace, **options)  # noqa: E731
        else:
            call = getattr(self._core, f"list_{_CORE[resource]}_for_all_namespaces")
        chosen = {"label_selector": selector} if selector else {}
        return self._pages(lambda **options: call(**chosen, **options), resource, "", namespace)

    def custom(self, group: str, versions: tuple[str, ...], resource: str, namespace: str | None) -> list[Item]:
        """Custom resources in the first version that the API server has.

        Raises:
            NotInstalled: it has none of them.
            Unlisted: the list failed.
        """
        for version in versions:
            try:
                return self._pages(self._custom_call(group, version, resource, namespace), resource, group, namespace)
            except NotInstalled:
                continue
        raise NotInstalled(f"{resource}.{group}")

    def _custom_call(self, group: str, version: str, resource: str, namespace: str | None) -> Callable[..., Any]:
        if namespace:
            return lambda **options: self._custom.list_namespaced_custom_object(
                group, version, namespace, resource, **options
            )
        return lambda **options: self._custom.list_cluster_custom_object(group, version, resource, **options)

    def _pages(self, call: Callable[..., Any], resource: str, group: str, namespace: str | None) -> list[Item]:
        until = time.monotonic() + LIST_SECONDS
        try:
            for _ in range(ATTEMPTS):
                try:
                    return self._once(call, until)
                except ApiException as error:
                    if error.status != 410:  # the token has expired: the list begins again
                        raise
            raise Unlisted(
                f"failed: the list of {resource} expired {ATTEMPTS} times before its end; run the hour again."
            )
        except ApiException as error:
            if error.status == 404 and group:  # the core API has its resources: another server responds
                raise NotInstalled(resource) from None
            raise Unlisted(self._refusal(error, resource, group, namespace)) from None
        except LimitExceeded as error:
            raise Unlisted(f"failed: list of {resource}: {error}; set `namespaces` or narrower `selectors`.") from None
        except TimeoutError:
            raise Unlisted(f"failed: the list of {resource} is not complete after {LIST_SECONDS} s.") from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unlisted(f"failed: no response from the API server: {_line(error)}") from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise Unlisted(f"failed: the list of {resource} is not one of the Kubernetes API.") from None

    def _once(self, call: Callable[..., Any], until: float) -> list[Item]:
        items: list[Item] = []
        token: str | None = None
        while True:
            page = _page(call, {"limit": PAGE_SIZE} | ({"_continue": token} if token else {}), until)
            items += page["items"] or []
            if len(items) > MOST_OBJECTS:
                raise LimitExceeded(f"more than {MOST_OBJECTS:,} objects")
            if not (token := page["metadata"].get("continue")):
                return items

    def _refusal(self, error: ApiException, resource: str, group: str, namespace: str | None) -> str:
        where = f"in namespace {namespace}" if namespace else "in all namespaces"
        if resource in _OF_CLUSTER:
            where = "(a ClusterRole)"
        if error.status == 401:
            return "failed: the API server rejects the credentials (401); renew the token of the kubeconfig's user."
        if error.status == 403:
            api = f"apiGroups: ['{group}'], resources: [{resource}], verbs: [get, list, watch]"
            return f"failed: access denied: list {resource} {where}; add to Streamwarden's role: {{{api}}}."
        if error.status in _BUSY:
            return f"failed: the API server failed to list {resource} in each of {ATTEMPTS} attempts ({error.status})."
        return f"failed: the API server failed to list {resource} {where}: {error.status} {_line(error.reason)}"


def _page(call: Callable[..., Any], options: dict[str, Any], until: float) -> Any:
    """One page; a busy server is asked again."""
    for attempt in range(1, ATTEMPTS + 1):
        if time.monotonic() > until:
            raise TimeoutError
        try:
            timeouts = (_CONNECT_SECONDS, _READ_SECONDS)
            answer = call(**options, _preload_content=False, _request_timeout=timeouts)
            return json_of(answer.data)
        except ApiException as error:
            if error.status not in _BUSY or attempt == ATTEMPTS:
                raise
            time.sleep(min(0.2 * 4**attempt, max(0.0, until - time.monotonic())))
    raise AssertionError("unreachable")


def _client_of(entry: KubernetesCluster) -> ApiClient:
    if entry.in_cluster:
        settings = Configuration()
        load_incluster_config(client_configuration=settings)
        return ApiClient(_without_retries(settings))
    settings = Configuration()
    file = str(entry.kubeconfig.expanduser()) if entry.kubeconfig else None
    return new_client_from_config(
        file, context=entry.context, persist_config=False, client_configuration=_without_retries(settings)
    )


def _without_retries(settings: Configuration) -> Configuration:
    settings.retries = urllib3.Retry(connect=1, read=0, redirect=0, status=0, backoff_factor=0.2)
    return settings


def _in_time(load: Callable[[], ApiClient], entry: KubernetesCluster) -> ApiClient:
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(load).result(LOGIN_SECONDS)
    except NotInTime:
        raise Unlisted(
            f"failed: the credential plugin of the kubeconfig did not end within {LOGIN_SECONDS} s."
        ) from None
    except ConfigException as error:
        if entry.in_cluster:
            raise Unlisted(f"failed: no service account of a pod: {_line(error)} Set `context` instead.") from None
        raise Unlisted(f"failed: the kubeconfig is not usable: {_line(error)}") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise Unlisted(f"failed: the kubeconfig is not usable: {type(error).__name__}: {_line(error)}") from None
    finally:
        pool.shutdown(wait=False)


class _Bounded:
    """The client's connections; a response is read here, up to the limits, before the client sees it."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def request(self, method: str, url: str, **options: Any) -> urllib3.HTTPResponse:
        response = self._pool.request(method, url, **options | {"preload_content": False})
        body, until = bytearray(), time.monotonic() + _RESPONSE_SECONDS
        try:
            while piece := response.read1(_PIECE):
                body += piece
                if len(body) > LIMITS.max_bytes:
                    raise LimitExceeded(f"response exceeds {LIMITS.max_bytes // 2**20} MiB")
                if time.monotonic() > until:
                    raise LimitExceeded(f"no complete response within {_RESPONSE_SECONDS} s")
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return urllib3.HTTPResponse(
            io.BytesIO(bytes(body)), response.headers, response.status, reason=response.reason, preload_content=False
        )

    def clear(self) -> None:
        self._pool.clear()


def _line(what: object) -> str:
    return " ".join(str(what).split())[:300].rstrip(".") + "."
