"""The Airflow plugin: adds Streamwarden's pages to the navigation. The only file in plugins/ that Airflow loads itself.

Every Airflow process loads it, so the pages are imported on the first request.
"""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin


async def pages(scope: Any, receive: Any, send: Any) -> None:
    """The pages as an ASGI application."""
    from streamwarden.ui.app import app

    await app(scope, receive, send)


class StreamwardenPlugin(AirflowPlugin):
    """Registers the pages and their navigation entry."""

    name = "streamwarden"
    fastapi_apps: ClassVar[list[Any]] = [{"app": pages, "url_prefix": "/streamwarden", "name": "Streamwarden"}]
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
