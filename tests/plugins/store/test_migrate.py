"""Migrations: forward only, repeatable, each table and column with a comment."""

import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.store import migration_files as module
from streamwarden.store.dependents import attached
from streamwarden.store.migrate import migrate, require_migrated
from streamwarden.store.migration_files import comments


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


def test_comments_come_from_the_lines_of_the_sql() -> None:
    text = "-- A table\n-- of values.\ncreate table a.b (\n  x integer not null,  -- It's x\n  primary key (x)\n);\n"
    assert list(comments(text)) == [
        "comment on table a.b is 'A table of values.'",
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


def test_partitions_of_a_day_are_created_once(empty_warehouse: sa.Engine) -> None:
    migrate(empty_warehouse)
    with empty_warehouse.begin() as connection:
        made = connection.execute(sa.text("select public.ensure_day('2026-01-05')")).scalar_one()
        assert made > 0
        assert connection.execute(sa.text("select public.ensure_day('2026-01-05')")).scalar_one() == 0
        samples = connection.execute(sa.text("select public.ensure_day('2026-01-06')")).scalar_one()
        assert 0 < samples < made


def test_rows_and_grants_of_an_older_warehouse_are_kept(empty_warehouse: sa.Engine, release: Path) -> None:
    migrate(empty_warehouse)
    role = f"reader_{empty_warehouse.url.database}"
    with empty_warehouse.begin() as connection:
        connection.exec_driver_sql(f"create role {role}; select public.ensure_day('2026-11-01')")
        connection.exec_driver_sql(
            "insert into metrics.consumer_group_hourly (hour, cluster, group_id, topics, partitions,"
            " lag_unknown_partitions) values ('2026-11-01T00:30Z', 'c', 'g', 1, 1, 0)"
        )
        connection.exec_driver_sql(f"grant select on metrics.consumer_group_hourly to {role}")
        connection.exec_driver_sql(f"grant select (hour) on detect.coverage to {role}")
        connection.exec_driver_sql("create view public.mine as select hour from metrics.consumer_group_hourly")
    (release / "migrations" / "9001_later.sql").write_text(
        "alter table metrics.consumer_group_hourly\n  add column later integer;  -- A later column\n"
    )
    with pytest.raises(
        StreamwardenError, match=r"is not up to date \(sql/migrations/9001_later.*: run `streamwarden mi"
    ):
        require_migrated(empty_warehouse)
    migrate(empty_warehouse)
    require_migrated(empty_warehouse)
    with empty_warehouse.begin() as connection:

        def ask(query: str) -> object:
            return connection.exec_driver_sql(query).scalar()

        assert ask("select count(*) from public.mine") == 1
        assert ask("select later is null from metrics.consumer_group_hourly") is True
        assert ask(f"select has_table_privilege('{role}', 'metrics.consumer_group_hourly', 'select')") is True
        assert ask(f"select has_column_privilege('{role}', 'detect.coverage', 'hour', 'select')") is True
        assert ask(f"select has_table_privilege('{role}', 'detect.coverage', 'select')") is False
        connection.exec_driver_sql(f"drop owned by {role}; drop role {role}")


MINE = """
    create function public.mine() returns trigger language plpgsql as $$ begin return new; end $$;
    create index "My index" on detect.detector (owner);
    create trigger mine before insert on detect.detector for each row execute function public.mine();
    create statistics public.mine on title, owner from detect.detector;
    alter table detect.detector add constraint mine check (title <> '')"""
REPLACES = """
create table detect.new_detector (like detect.detector including all);
drop table detect.detector;
alter table detect.new_detector rename to detector;
"""


@pytest.fixture
def with_mine(empty_warehouse: sa.Engine) -> sa.Engine:
    """A migrated warehouse to whose tables a user has attached an index, a trigger, statistics, and a constraint."""
    migrate(empty_warehouse)
    with empty_warehouse.begin() as connection:
        connection.exec_driver_sql(MINE)
    return empty_warehouse


def test_what_users_attached_to_our_tables_is_kept(with_mine: sa.Engine, release: Path) -> None:
    with with_mine.connect() as connection:
        before = attached(connection)
    (release / "migrations" / "9001_replaces.sql").write_text(REPLACES.replace("including all", "including defaults"))
    migrate(with_mine)
    with with_mine.connect() as connection:
        assert attached(connection) == before
    assert {name.rpartition(" ")[2].strip('"') for name in before} >= {"index", "mine", "public.mine"}


def test_what_cannot_be_kept_is_named_and_nothing_is_changed(with_mine: sa.Engine, release: Path) -> None:
    text = "alter table detect.detector drop column owner;"
    (release / "migrations" / "9001_drops.sql").write_text(text)
    message = r'nothing was changed: sql/migrations/9001_drops\.sql would drop index detect\."My index", and'
    with pytest.raises(StreamwardenError, match=message):
        migrate(with_mine)
    assert "owner" in {column["name"] for column in sa.inspect(with_mine).get_columns("detector", schema="detect")}


def test_a_warehouse_from_before_the_first_release_is_a_one_line_error(empty_warehouse: sa.Engine) -> None:
    with empty_warehouse.begin() as connection:
        connection.exec_driver_sql(
            "create table public.schema_migration (name text primary key, checksum text not null)"
        )
        connection.exec_driver_sql("insert into public.schema_migration values ('migrations/0003_detect.sql', 'x')")
    with pytest.raises(StreamwardenError, match=r"created before release 0\.1\.0.*Migrate a new database"):
        require_migrated(empty_warehouse)
