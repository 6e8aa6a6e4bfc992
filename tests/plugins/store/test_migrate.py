"""Migrations: forward only, repeatable, each table and column with a comment."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.errors import StreamwardenError
from streamwarden.store import migrate as module
from streamwarden.store.migrate import SQL, comments, migrate, require_migrated


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of sql/ that a test may change: the next release."""
    shutil.copytree(SQL, tmp_path / "sql")
    monkeypatch.setattr(module, "SQL", tmp_path / "sql")
    return tmp_path / "sql"


def test_a_second_run_changes_nothing(warehouse: sa.Engine) -> None:
    assert migrate(warehouse) == []


def test_every_table_view_and_column_has_a_comment(warehouse: sa.Engine) -> None:
    bare = sa.text("""
        select n.nspname || '.' || c.relname || coalesce('.' || a.attname, '')
        from pg_class c
        join pg_namespace n on n.oid = c.relnamespace
        left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where n.nspname in ('inventory', 'metrics', 'detect', 'tickets', 'public')
          and c.relkind in ('r', 'p', 'v') and not c.relispartition
          and (obj_description(c.oid) is null or col_description(c.oid, a.attnum) is null)
        order by 1""")
    with warehouse.connect() as connection:
        assert connection.execute(bare).scalars().all() == []


def test_an_edited_migration_is_refused(warehouse: sa.Engine) -> None:
    with warehouse.begin() as connection:
        connection.exec_driver_sql("update public.schema_migration set checksum = 'x'")
    with pytest.raises(StreamwardenError, match="was edited after it was applied"):
        migrate(warehouse)


def test_a_bad_migration_leaves_nothing(warehouse: sa.Engine, release: Path) -> None:
    (release / "migrations" / "9001_good.sql").write_text("create table public.half_done (x integer);")
    (release / "migrations" / "9002_bad.sql").write_text("create table public.other (x integr);")
    with pytest.raises(StreamwardenError, match=r'sql/migrations/9002_bad\.sql: type "integr" does not exist'):
        migrate(warehouse)
    assert not sa.inspect(warehouse).has_table("half_done", schema="public")


def test_comments_come_from_the_lines_themselves() -> None:
    text = "-- A thing\n-- of value.\ncreate table a.b (\n  x integer not null,  -- It's x\n  primary key (x)\n);\n"
    assert list(comments(text)) == [
        "comment on table a.b is 'A thing of value.'",
        "comment on column a.b.x is 'It''s x'",
    ]
    function = (
        "-- What it gives.\ncreate or replace function a.f(x text) returns text language sql as $$\n  x -- y\n$$;\n"
    )
    assert list(comments(function)) == ["comment on function a.f is 'What it gives.'"]
    later = "-- Why it grew.\nalter table a.b\n  add column y integer,  -- Why\n  add column z integer;  -- Zed\n"
    assert list(comments(text + "\n" + later))[2:] == [
        "comment on column a.b.y is 'Why'",
        "comment on column a.b.z is 'Zed'",
    ]


def test_partitions_of_a_day_are_made_once(empty_warehouse: sa.Engine) -> None:
    migrate(empty_warehouse)
    with empty_warehouse.begin() as connection:
        made = connection.execute(sa.text("select public.ensure_day('2026-01-05')")).scalar_one()
        assert made > 0
        assert connection.execute(sa.text("select public.ensure_day('2026-01-05')")).scalar_one() == 0
        samples = connection.execute(sa.text("select public.ensure_day('2026-01-06')")).scalar_one()
        assert 0 < samples < made


_SAMPLES = """
    create table metrics.broker_sample_20261101 partition of metrics.broker_sample
    for values from ('2026-11-01 00:00Z') to ('2026-11-02 00:00Z');
    create table metrics.replica_sample_20261101 partition of metrics.replica_sample
    for values from ('2026-11-01 00:00Z') to ('2026-11-02 00:00Z');
    insert into metrics.broker_sample (hour, cluster, endpoint, metric, labels, at, kind, value)
    select '2026-11-01 10:00Z', 'c', 'e', metric, labels, ('2026-11-01 10:' || minute || 'Z')::timestamptz, 'counter', n
    from (values
      ('bytes_in_total', '{"topic": "t"}', '10', 10), ('bytes_in_total', '{"topic": "t"}', '20', 20),
      ('log_bytes', '{"topic": "t"}', '20', 7), ('bytes_in_total', '{}', '10', 10)
    ) as read (metric, labels, minute, n);
    insert into metrics.replica_sample
    (hour, cluster, topic, partition, broker_id, log_dir, is_future, size_bytes, offset_lag)
    values
    ('2026-11-01 10:00Z', 'c', 't', 0, 1, '/d', false, 100, 0),
    ('2026-11-01 10:00Z', 'c', 't', 1, 1, '/d', false, 200, 5)
"""


_TICKETS = """
    insert into tickets.ticket
    (fingerprint, detector, resource_name, identity, severity, title, state, opened_hour, last_firing_hour, sink,
     external_key, external_url, summary_ticket_id)
    values
    ('told', 'd', 'r', '{}', 'info', 't', 'open', '2026-11-01', '2026-11-01', 'roundup', '7', 'https://t/7', null),
    ('half', 'd', 'r', '{}', 'info', 't', 'open', '2026-11-01', '2026-11-01', 'roundup', '8', 'https://t/8', null),
    ('new', 'd', 'r', '{}', 'info', 't', 'open', '2026-11-01', '2026-11-01', 'roundup', null, null, null),
    ('in a storm', 'd', 'r', '{}', 'info', 't', 'open', '2026-11-01', '2026-11-01', 'roundup', null, null, 1);
    insert into tickets.change (ticket_id, action, hour, body, done_at) values
    (1, 'create', '2026-11-01', '', now()), (2, 'create', '2026-11-01', '', now()),
    (2, 'close', '2026-11-01', '', null), (3, 'create', '2026-11-01', '', null);
"""


def test_rows_and_grants_of_an_older_warehouse_are_kept(empty_warehouse: sa.Engine, release: Path) -> None:
    later = [file for file in (release / "migrations").iterdir() if file.name >= "0020"]
    later += [*(release / "views").iterdir(), *(release / "functions").iterdir()]
    texts = {file: file.read_text() for file in later}
    for file in later:
        file.unlink()
    (release / "functions" / "partitions.sql").write_text(
        "-- Days.\ncreate or replace function public.ensure_day(day date) returns integer language sql as 'select 0';\n"
    )
    migrate(empty_warehouse)
    role = f"reader_{empty_warehouse.url.database}"
    with empty_warehouse.begin() as connection:
        connection.exec_driver_sql(f"create role {role}")
        for hour in ("2026-10-31T23:30Z", "2026-11-01T00:30Z"):
            connection.exec_driver_sql(
                "insert into metrics.consumer_group_hourly (hour, cluster, group_id, topics, partitions,"
                f" lag_unknown_partitions) values ('{hour}', 'c', 'g', 1, 1, 0)"
            )
        connection.exec_driver_sql(f"grant select on metrics.consumer_group_hourly to {role}")
        connection.exec_driver_sql(f"grant select (hour) on detect.coverage to {role}")
        connection.exec_driver_sql("create view public.mine as select hour from metrics.consumer_group_hourly")
        connection.exec_driver_sql(_SAMPLES)
        connection.exec_driver_sql(_TICKETS)
        connection.exec_driver_sql("alter table public.schema_migration drop column superseded")
    for file, text in texts.items():
        file.write_text(text)
    with pytest.raises(
        StreamwardenError, match=r"isn't up to date \(sql/migrations/0020.* more\): run `streamwarden mi"
    ):
        require_migrated(empty_warehouse)
    migrate(empty_warehouse)
    require_migrated(empty_warehouse)
    with empty_warehouse.begin() as connection:

        def ask(query: str) -> object:
            return connection.exec_driver_sql(query).scalar()

        assert ask("select count(*) from metrics.consumer_group_hourly_202610") == 1
        assert ask("select count(*) from public.mine") == 2
        assert ask("select obj_description('detect.coverage'::regclass)").startswith("What each source was asked")  # type: ignore[attr-defined]
        assert ask(f"select has_table_privilege('{role}', 'metrics.consumer_group_hourly', 'select')") is True
        assert ask(f"select has_column_privilege('{role}', 'detect.coverage', 'hour', 'select')") is True
        assert ask(f"select has_table_privilege('{role}', 'detect.coverage', 'select')") is False
        issues = (
            "select ticket_id, tracker, external_key, external_url, delivered_change_id from tickets.issue order by 1"
        )
        assert connection.exec_driver_sql(issues).all() == [
            (1, "roundup", "7", "https://t/7", 1),
            (2, "roundup", "8", "https://t/8", 2),
            (3, "roundup", None, None, 3),
        ]
        topic = (
            "select bytes_in_total, messages_in_total, log_bytes, at from metrics.broker_topic_sample where topic = 't'"
        )
        assert connection.exec_driver_sql(topic).one() == (20, None, 7, datetime(2026, 11, 1, 10, 20, tzinfo=UTC))
        assert ask("select count(*) from metrics.broker_sample") == 1
        replicas = "select partition, size_bytes, offset_lag from public.replicas order by partition"
        assert connection.exec_driver_sql(replicas).all() == [(0, 100, 0), (1, 200, 5)]
        assert ask("select (replicas, size_bytes) = (2, 300) from metrics.replica_sample") is True
        connection.exec_driver_sql(f"drop owned by {role}; drop role {role}")
