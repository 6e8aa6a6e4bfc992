"""A broker with a second listener that wants SASL and obeys ACLs; who comes by the plain one may do everything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo.broker import Broker
from demo.process import free_port

_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass(frozen=True)
class SecuredBroker:
    """The broker, and the address of its second listener."""

    broker: Broker
    sasl_servers: str

    @property
    def bootstrap_servers(self) -> str:
        """The listener that asks nobody who they are."""
        return self.broker.bootstrap_servers

    def cluster(self, name: str, user: str, password: str) -> dict[str, object]:
        """An entry under `kafka` of a config."""
        login = {"sasl.username": user, "sasl.password": password}
        client = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"} | login
        return {"name": name, "bootstrap_servers": self.sasl_servers, "client": client}


@contextmanager
def secured_broker(folder: Path, passwords: dict[str, str]) -> Iterator[SecuredBroker]:
    """Knows these users, who may do nothing yet."""
    port, sasl_port, controller = free_port(), free_port(), free_port()
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port},"
        f"CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_LOGIN} {users};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Broker(folder, port=port, controller_port=controller, settings=settings) as broker:
        yield SecuredBroker(broker, f"127.0.0.1:{sasl_port}")
