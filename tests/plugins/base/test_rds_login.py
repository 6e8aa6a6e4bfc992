"""Log-in to the warehouse by an IAM token of RDS: SQLAlchemy, ADBC (as in Spark's tasks), and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import adbc_driver_postgresql.dbapi as adbc
import pytest
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.rds_login import iam_token, with_password
from streamwarden.base.warehouse import engine, with_session_options
from streamwarden.cli.main import app
from typer.testing import CliRunner

from tests.rds_server import KEY, REGION, SECRET, RdsServer, an_rds_server


@pytest.fixture
def rds(warehouse: sa.Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[RdsServer]:
    """RDS in front of the test's warehouse; the environment has the credentials of an AWS identity."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    socket = Path(str(warehouse.url.query["host"])) / ".s.PGSQL.5432"
    with an_rds_server(socket) as server:
        yield server


@pytest.fixture
def url(rds: RdsServer, warehouse: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> str:
    user, database = warehouse.url.username or "postgres", warehouse.url.database
    url = f"postgresql://{user}@127.0.0.1:{rds.port}/{database}?sslmode=disable&aws_iam=true&application_name=iam"
    monkeypatch.setenv(WAREHOUSE_ENV, url)
    return url


QUERY = "select current_setting('application_name') as name, current_setting('timezone') as zone"


def test_each_connection_of_sqlalchemy_has_a_token_of_its_own(rds: RdsServer, url: str) -> None:
    connected = engine(url)
    for _ in range(2):
        with connected.connect() as connection:
            assert tuple(connection.execute(sa.text(QUERY)).one()) == ("iam", "UTC")
        connected.dispose()
    assert (rds.accepted, rds.refusals) == (2, [])


def test_adbc_connects_with_a_token(rds: RdsServer, url: str) -> None:
    with adbc.connect(with_session_options(url)) as connection, connection.cursor() as cursor:
        cursor.execute(QUERY)
        assert cursor.fetchone() == ("iam", "UTC")
    assert rds.accepted and not rds.refusals


def test_the_commands_connect_with_a_token(
    rds: RdsServer, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "streamwarden.yaml").write_text("{}")
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "streamwarden.yaml"))
    printed = CliRunner().invoke(app, ["warehouse", "url"])
    assert printed.exit_code == 0, printed.output
    assert "aws_iam" not in printed.output
    with sa.create_engine(printed.output.strip().replace("postgresql:", "postgresql+psycopg:")).connect() as connection:
        assert connection.execute(sa.text("select 1")).scalar() == 1
    assert rds.accepted == 1


@pytest.mark.parametrize(
    ("change", "refusal"),
    [("secret", "wrong signature"), ("time", "expired"), ("port", "made for"), ("region", "wrong X-Amz-Credential")],
)
def test_what_rds_refuses_is_an_error(
    rds: RdsServer, url: str, monkeypatch: pytest.MonkeyPatch, change: str, refusal: str
) -> None:
    """The server of these tests is as strict as RDS: each of these tokens is refused, so the others were right."""
    from streamwarden.base import rds_login

    with monkeypatch.context() as changed:
        rds_login._rds.cache_clear()
        if change == "secret":
            changed.setenv("AWS_SECRET_ACCESS_KEY", "another")
        if change == "region":
            changed.setenv("AWS_DEFAULT_REGION", "us-east-1")
        if change == "time":
            rds.clock = lambda: datetime.now(UTC) + timedelta(minutes=16)
        token = with_password(url.replace(f":{rds.port}/", ":5432/") if change == "port" else url)
        token = token.replace(":5432/", f":{rds.port}/", 1)
        with pytest.raises(adbc.OperationalError, match="PAM authentication failed"):
            adbc.connect(token)
    rds_login._rds.cache_clear()
    assert rds.refusals and rds.refusals[0].startswith(refusal)


def test_a_user_or_credentials_are_missing(monkeypatch: pytest.MonkeyPatch, rds: RdsServer) -> None:
    for wrong in ("postgresql://h.x.eu-west-1.rds.amazonaws.com/d", "postgresql://u:p@h/d"):
        with pytest.raises(StreamwardenError, match=r"warehouse\.url: aws_iam=true needs a user"):
            iam_token(f"{wrong}?aws_iam=true")


def test_the_region_stands_in_the_name_of_the_endpoint(rds: RdsServer) -> None:
    token = iam_token("postgresql://u@db.c9akciq32.ap-south-1.rds.amazonaws.com:6432/d?aws_iam=true")
    assert token.startswith("db.c9akciq32.ap-south-1.rds.amazonaws.com:6432/?Action=connect&DBUser=u&")
    assert "%2Fap-south-1%2Frds-db%2F" in token


def test_without_the_marker_an_url_stays_as_it_is() -> None:
    assert with_password("postgresql://u@h/d?sslmode=disable") == "postgresql://u@h/d?sslmode=disable"
