"""Airflow's plugin: Streamwarden's pages in the navigation. The sole file under plugins/ that Airflow executes.

Every Airflow process loads it, so nothing is imported before the first page is asked for.
"""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin


async def pages(scope: Any, receive: Any, send: Any) -> None:
    """The pages as an ASGI application."""
    from streamwarden.ui.app import app

    await app(scope, receive, send)


class StreamwardenPlugin(AirflowPlugin):
    """Where Airflow finds the pages, and the entry in its navigation."""

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
