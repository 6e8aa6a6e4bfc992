"""A broker with ACLs and a second listener with SASL over TLS. Clients of the plaintext listener are super users."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from demo.broker import Broker
from demo.process import free_port

from spark_apps.runtime.class_archive import java

_MODULES = "org.apache.kafka.common.security"
STORE_PASSWORD = "not-secret"
_SCRAM = "SCRAM-SHA-512"


@dataclass(frozen=True)
class SecuredBroker:
    """The broker, the address of its SASL listener, and the certificate of that listener."""

    broker: Broker
    sasl_servers: str
    certificate: Path

    @property
    def bootstrap_servers(self) -> str:
        """Address of the plaintext listener, without authentication."""
        return self.broker.bootstrap_servers

    def cluster(self, name: str, user: str, password: str, mechanism: str = _SCRAM) -> dict[str, object]:
        """An entry under `kafka` of a config. Users are the same for both mechanisms, PLAIN and SCRAM-SHA-512."""
        login = {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
        client = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(self.certificate)} | login
        return {"name": name, "bootstrap_servers": self.sasl_servers, "client": client}


@contextmanager
def secured_broker(folder: Path, passwords: dict[str, str]) -> Iterator[SecuredBroker]:
    """Runs a broker with these users, which have no ACLs yet."""
    port, sasl_port, controller = free_port(), free_port(), free_port()
    keystore, certificate = self_signed(folder)
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{sasl_port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(keystore),
        "ssl.keystore.password": STORE_PASSWORD,
        "sasl.enabled.mechanisms": f"PLAIN,{_SCRAM}",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required {users};",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "broker.rack": "eu-central-1a",
    }
    with Broker(folder, port=port, controller_port=controller, settings=settings) as broker:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        added = [UserScramCredentialUpsertion(name, info, text.encode()) for name, text in passwords.items()]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for future in admin.alter_user_scram_credentials(added).values():
            future.result(20)
        yield SecuredBroker(broker, f"127.0.0.1:{sasl_port}", certificate)


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Creates a key store for 127.0.0.1. Returns its path and the path of its certificate (PEM)."""
    folder.mkdir(parents=True, exist_ok=True)
    keystore, certificate = folder / "keystore.p12", folder / "certificate.pem"
    name = ("-dname", "CN=127.0.0.1", "-ext", "SAN=IP:127.0.0.1", "-keyalg", "EC", "-validity", "2")
    _keytool(keystore, "-genkeypair", *name)
    _keytool(keystore, "-exportcert", "-rfc", "-file", str(certificate))
    return keystore, certificate


def truststore(certificate: Path) -> Path:
    """Creates a trust store for Java with this certificate."""
    store = certificate.with_name("truststore.p12")
    _keytool(store, "-importcert", "-noprompt", "-file", str(certificate))
    return store


def _keytool(store: Path, *command: str) -> None:
    keytool = shutil.which("keytool", path=str(Path(java()).parent)) or "keytool"
    where = ("-alias", "self", "-keystore", str(store), "-storetype", "PKCS12", "-storepass", STORE_PASSWORD)
    subprocess.run([keytool, *command, *where], check=True, capture_output=True)
