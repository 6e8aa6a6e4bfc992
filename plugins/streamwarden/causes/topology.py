"""Stores the resources of an hour and their dependencies, so that pages need not compute them."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from streamwarden.store.queries import ask, statement


def store_topology(warehouse: sa.Engine, hour: datetime) -> int:
    """Replaces the stored resources and links by those of an hour, unless they are of a later hour (a backfill).

    Returns: the number of resources; 0 if nothing was replaced.
    """
    with warehouse.begin() as connection:
        # Two runs at the same time wait for each other; pages read the previous rows until the end.
        connection.exec_driver_sql("lock table detect.resource in share row exclusive mode")
        stored = ask(connection, "causes/stored_hour")[0]["as_of"]
        if stored is not None and stored > hour:
            return 0
        connection.exec_driver_sql("delete from detect.resource_link")
        connection.exec_driver_sql("delete from detect.resource")
        connection.execute(statement("causes/store_links"), {"hour": hour})
        return connection.execute(statement("causes/store_resources"), {"hour": hour}).rowcount
