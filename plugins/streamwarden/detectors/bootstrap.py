"""Bootstrap servers for commands to paste: of the config, or of a discovered cluster, without hosts that are down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from streamwarden.base.config import Config


@dataclass(frozen=True)
class BootstrapServers:
    """Bootstrap servers of all clusters in one hour."""

    config: Config
    discovered: dict[str, str]
    """By name of a cluster of MSK or Strimzi, as the last day has them."""
    down: dict[str, set[str]]
    """By cluster, the hosts of which no broker is listed: a client should not begin with them."""

    @classmethod
    def of(cls, connection: sa.Connection, config: Config, hour: datetime | None = None) -> BootstrapServers:
        """Those of an hour; None: the newest loaded one."""
        hour = hour or connection.execute(sa.text("select max(hour) from detect.load")).scalar_one()
        has_discovery = bool(config.msk or config.kubernetes)
        rows = connection.execute(_DISCOVERED, {"hour": hour}) if has_discovery else ()
        down: dict[str, set[str]] = {}
        for cluster, host in connection.execute(_HOSTS_DOWN, {"hour": hour}):
            down.setdefault(cluster, set()).add(host.lower())
        return cls(config, {row.cluster: row.bootstrap_servers for row in rows}, down)

    def servers(self, cluster: str) -> str:
        """host:port, separated by commas; `<host:port>` if the cluster is not known."""
        servers = self.config.bootstrap_servers(cluster)
        if cluster not in {one.name for one in self.config.kafka}:
            servers = self.discovered.get(cluster, servers)
        return _reachable(servers, self.down.get(cluster, set()))


def _reachable(servers: str, down: set[str]) -> str:
    """Bootstrap servers without those on these hosts; all of them if none would be left."""
    up = [one.strip() for one in servers.split(",") if one.strip().rpartition(":")[0].strip("[]").lower() not in down]
    return ",".join(up) if down and up else servers


_DISCOVERED = sa.text("""
    select distinct on (cluster) cluster, bootstrap_servers
    from (
      select hour, cluster, bootstrap_servers from inventory.msk_cluster_hourly
      union all
      select hour, cluster, bootstrap_servers from inventory.strimzi_resource_hourly
    ) as discovered
    where
      hour > cast(:hour as timestamptz) - interval '24 hours' and hour <= cast(:hour as timestamptz)
      and bootstrap_servers is not null
    order by cluster, hour desc""")
_HOSTS_DOWN = sa.text("""
    select distinct b.cluster, last.host
    from inventory.broker_hourly as b
    cross join lateral (
      select p.host from inventory.broker_hourly as p
      where
        p.cluster = b.cluster and p.broker_id = b.broker_id and p.host is not null
        and p.hour < :hour and p.hour >= cast(:hour as timestamptz) - interval '7 days'
      order by p.hour desc limit 1
    ) as last
    where
      b.hour = :hour and not b.is_listed and not exists (
        select from inventory.broker_hourly as o
        where o.hour = :hour and o.cluster = b.cluster and o.is_listed and o.host = last.host
      )""")
