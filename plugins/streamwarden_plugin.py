"""The Airflow plugin: adds Streamwarden's pages to the navigation, the REST API, and the Prometheus page.

It is the only file in plugins/ that Airflow loads itself. Every Airflow process loads it, so the applications are
imported on the first request.
"""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin


async def pages(scope: Any, receive: Any, send: Any) -> None:
    """The pages, and the Prometheus page, as an ASGI application. A mount of its own needs a slash at the end."""
    if str(scope.get("path", "")).removeprefix(str(scope.get("root_path", ""))) == "/metrics":
        from streamwarden.api.metrics import app
    else:
        from streamwarden.ui.app import app

    await app(scope, receive, send)


async def api(scope: Any, receive: Any, send: Any) -> None:
    """The REST API as an ASGI application."""
    from streamwarden.api.app import app

    await app(scope, receive, send)


class StreamwardenPlugin(AirflowPlugin):
    """Registers the applications, and the navigation entry of the pages."""

    name = "streamwarden"
    # In this order: the first prefix that matches a path gets the request.
    fastapi_apps: ClassVar[list[Any]] = [
        {"app": api, "url_prefix": "/streamwarden/api/v1", "name": "Streamwarden API"},
        {"app": pages, "url_prefix": "/streamwarden", "name": "Streamwarden"},
    ]
    external_views: ClassVar[list[Any]] = [
        {
            "name": "Streamwarden",
            "href": "streamwarden/",
            "destination": "nav",
            "url_route": "streamwarden",
            "icon": "/streamwarden/static/icon.svg",
            "icon_dark_mode": "/streamwarden/static/icon-dark.svg",
            "nav_top_level": True,
        }
    ]
