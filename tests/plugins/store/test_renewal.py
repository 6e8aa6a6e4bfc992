"""An upgrade replaces our functions and views, and keeps objects that users built on them."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import SQL
from streamwarden.store import migration_files as module
from streamwarden.store.migrate import migrate, require_migrated

OURS = """-- Groups.
create or replace view public.some_groups as
select
  cluster,  -- Cluster
  group_id,  -- Group
  lag_records  -- Lag
from metrics.consumer_group_hourly;
"""
NARROWER = OURS.replace("  cluster,  -- Cluster\n", "")
ON_OURS = """-- Groups that lag.
create or replace view public.lagging_groups as
select
  group_id,  -- Group
  public.far_behind(lag_records) as is_far_behind  -- Whether it is
from public.some_groups;
"""
FUNCTION = """-- Whether that is much.
create or replace function public.far_behind(lag double precision) returns boolean language sql stable as $$
  select lag > (select avg(g.lag_records) from public.some_groups as g)
$$;
"""


class Release:
    """The sql/ folder of the next release, and the warehouse that it migrates."""

    def __init__(self, folder: Path, warehouse: sa.Engine) -> None:
        self.folder, self.warehouse = folder, warehouse

    def add(self, name: str, text: str) -> "Release":
        (self.folder / name).write_text(text)
        return self

    def remove(self, name: str, *, retired: bool = True) -> "Release":
        (self.folder / name).unlink()
        if retired:
            with (self.folder / "retired.txt").open("a") as file:
                file.write(f"{name}\n")
        return self

    def migrate(self, *, back: bool = False) -> list[str]:
        return migrate(self.warehouse, back=back)

    def sql(self, statements: str) -> None:
        with self.warehouse.begin() as connection:
            connection.exec_driver_sql(statements.replace("%", "%%"))

    def ask(self, query: str) -> Any:
        with self.warehouse.connect() as connection:
            return connection.exec_driver_sql(query).scalar()

    def columns(self, view: str) -> list[str]:
        schema, name = view.split(".")
        return [column["name"] for column in sa.inspect(self.warehouse).get_columns(name, schema=schema)]


@pytest.fixture
def release(warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Release]:
    """A warehouse with OURS, ON_OURS and FUNCTION, an analyst's schema and two roles."""
    shutil.copytree(SQL, tmp_path / "sql")
    monkeypatch.setattr(module, "SQL", tmp_path / "sql")
    release = Release(tmp_path / "sql", warehouse)
    release.add("views/a_lagging_groups.sql", ON_OURS).add("views/some_groups.sql", OURS)
    release.add("functions/far_behind.sql", FUNCTION)
    assert release.migrate() == ["functions/far_behind.sql", "views/some_groups.sql", "views/a_lagging_groups.sql"]
    suffix = warehouse.url.database
    release.sql(f"create role reader_{suffix}; create role bob_{suffix}; create schema analyst")
    release.reader, release.bob = f"reader_{suffix}", f"bob_{suffix}"  # type: ignore[attr-defined]
    yield release
    release.sql(
        f"drop schema analyst cascade; drop owned by reader_{suffix}, bob_{suffix} cascade;"
        f" drop role reader_{suffix}, bob_{suffix}"
    )


def test_only_changed_files_are_replaced(release: Release) -> None:
    before = release.ask("select xmin::text from pg_class where oid = 'public.volumes'::regclass")
    wider = OURS.replace("  lag_records  -- Lag", "  lag_records,  -- Lag\n  hour  -- The hour (UTC)")
    assert release.add("views/some_groups.sql", wider).migrate() == ["views/some_groups.sql"]
    assert release.columns("public.some_groups") == ["cluster", "group_id", "lag_records", "hour"]
    assert release.ask("select xmin::text from pg_class where oid = 'public.volumes'::regclass") == before


def test_objects_of_users_survive_changed_columns(release: Release) -> None:
    reader, bob = release.reader, release.bob  # type: ignore[attr-defined]
    release.sql(f"""
        grant select on public.some_groups to {reader} with grant option;
        grant select (group_id) on public.lagging_groups to {reader};
        create view analyst.mine with (security_invoker=true) as
        select group_id, lag_records * 2 as twice from public.some_groups;
        comment on view analyst.mine is 'It''s 100 % mine: no :name';
        comment on column analyst.mine.twice is 'Doubled';
        create materialized view public.kept as select twice from analyst.mine;
        create unique index kept_twice on public.kept (twice);
        create view public.far as select * from public.lagging_groups;
        create function analyst.rows() returns setof public.some_groups language sql
        as 'select * from public.some_groups';
        alter view analyst.mine owner to {bob}; grant usage, create on schema analyst to {bob};
        grant select on public.some_groups to {bob};
        grant select on analyst.mine to {reader}; grant execute on function analyst.rows to {reader};
        revoke execute on function analyst.rows from public;
        create table public.notes (text text); create table metrics.own (x integer)""")
    assert release.add("views/some_groups.sql", NARROWER).migrate() == ["views/some_groups.sql"]
    assert release.columns("public.some_groups") == ["group_id", "lag_records"]
    assert release.columns("analyst.mine") == ["group_id", "twice"]
    for relation in ("public.lagging_groups", "public.kept", "public.far", "public.notes", "metrics.own"):
        release.sql(f"select from {relation}")
    assert release.ask("select indexname from pg_indexes where tablename = 'kept'") == "kept_twice"
    assert release.ask("select obj_description('analyst.mine'::regclass)") == "It's 100 % mine: no :name"
    assert release.ask("select col_description('analyst.mine'::regclass, 2)") == "Doubled"
    assert release.ask("select obj_description('public.lagging_groups'::regclass)") == "Groups that lag."
    assert release.ask("select reloptions from pg_class where oid = 'analyst.mine'::regclass") == [
        "security_invoker=true"
    ]
    assert release.ask("select relowner::regrole::text from pg_class where oid = 'analyst.mine'::regclass") == bob
    for right in (
        f"has_table_privilege('{reader}', 'public.some_groups', 'select with grant option')",
        f"has_column_privilege('{reader}', 'public.lagging_groups', 'group_id', 'select')",
        f"not has_column_privilege('{reader}', 'public.lagging_groups', 'is_far_behind', 'select')",
        f"has_table_privilege('{reader}', 'analyst.mine', 'select')",
        f"has_function_privilege('{reader}', 'analyst.rows()', 'execute')",
        f"not has_function_privilege('{bob}', 'analyst.rows()', 'execute')",
    ):
        assert release.ask(f"select {right}"), right
    assert release.migrate() == []


def test_an_object_that_no_longer_fits_is_named_and_nothing_changes(release: Release) -> None:
    release.sql("""
        create view analyst.by_cluster as select cluster, count(*) as groups from public.some_groups group by cluster;
        create view analyst.lags as select lag_records from public.some_groups""")
    release.add("views/some_groups.sql", NARROWER).add(
        "migrations/9001_new.sql", "create table public.new_one (x text);"
    )
    with pytest.raises(
        StreamwardenError, match=r"nothing was changed: .*: view analyst\.by_cluster \(column .*cluster"
    ):
        release.migrate()
    assert release.columns("analyst.by_cluster") == ["cluster", "groups"]
    assert release.columns("public.some_groups") == ["cluster", "group_id", "lag_records"]
    assert not sa.inspect(release.warehouse).has_table("new_one")


def test_an_object_that_cannot_be_recreated_is_named(release: Release) -> None:
    release.sql("create table analyst.copies (one public.some_groups)")
    with pytest.raises(StreamwardenError, match=r"sql/views/some_groups\.sql: .*table analyst\.copies"):
        release.add("views/some_groups.sql", NARROWER).migrate()
    assert release.columns("public.some_groups") == ["cluster", "group_id", "lag_records"]


def test_a_function_with_a_changed_signature_replaces_the_old_one(release: Release) -> None:
    release.sql("create view analyst.far as select public.far_behind(lag_records) as yes from public.some_groups")
    reader, bob = release.reader, release.bob  # type: ignore[attr-defined]
    release.sql(f"""
        revoke execute on function public.far_behind from public;
        grant execute on function public.far_behind to {reader}""")
    wider = FUNCTION.replace("(lag double precision)", "(lag double precision, lowest double precision default 5)")
    wider = wider.replace("select lag >", "select lag > lowest and lag >")
    assert release.add("functions/far_behind.sql", wider).migrate() == ["functions/far_behind.sql"]
    assert release.ask("select count(*) from pg_proc where proname = 'far_behind'") == 1
    assert release.columns("analyst.far") == ["yes"]
    assert release.ask(f"select has_function_privilege('{reader}', to_regproc('public.far_behind'), 'execute')")
    assert not release.ask(f"select has_function_privilege('{bob}', to_regproc('public.far_behind'), 'execute')")
    assert release.columns("public.lagging_groups") == ["group_id", "is_far_behind"]
    text = wider.replace("returns boolean", "returns text").replace("select lag >", "select 'yes' where lag >")
    assert release.add("functions/far_behind.sql", text).migrate() == ["functions/far_behind.sql"]
    assert str(sa.inspect(release.warehouse).get_columns("far", schema="analyst")[0]["type"]) == "TEXT"
    assert release.migrate() == []


def test_a_function_with_a_changed_signature_may_be_commented_by_name(release: Release) -> None:
    comment = "comment on function public.far_behind is 'Whether it is far behind';"
    release.add("functions/far_behind.sql", f"{FUNCTION}\n{comment}").migrate()
    wider = FUNCTION.replace("(lag double precision)", "(lag double precision, lowest double precision default 5)")
    assert release.add("functions/far_behind.sql", f"{wider}\n{comment}").migrate() == ["functions/far_behind.sql"]
    assert release.ask("select count(*) from pg_proc where proname = 'far_behind'") == 1
    assert release.columns("public.lagging_groups") == ["group_id", "is_far_behind"]


def test_a_function_with_an_invalid_body_is_an_error(release: Release) -> None:
    with pytest.raises(
        StreamwardenError, match=r'sql/functions/far_behind\.sql: relation "public.gone" does not exist'
    ):
        release.add("functions/far_behind.sql", FUNCTION.replace("public.some_groups", "public.gone")).migrate()


def test_a_deleted_view_is_dropped_unless_it_is_used(release: Release) -> None:
    release.sql("create view analyst.mine as select group_id from public.some_groups")
    release.remove("views/a_lagging_groups.sql").remove("views/some_groups.sql").remove("functions/far_behind.sql")
    assert release.migrate() == []
    assert release.ask("select to_regclass('public.lagging_groups')") is None
    assert release.ask("select to_regproc('public.far_behind')") is None
    assert release.columns("analyst.mine") == ["group_id"]
    release.sql("drop view analyst.mine")
    release.migrate()
    assert release.ask("select to_regclass('public.some_groups')") is None


def test_a_dropped_view_is_recreated(release: Release) -> None:
    release.sql("drop view public.some_groups cascade")
    assert release.migrate() == []
    assert release.columns("public.lagging_groups") == ["group_id", "is_far_behind"]


def test_a_foreign_view_of_the_same_name_is_not_replaced(release: Release) -> None:
    release.sql("create view public.new_view as select 1 as mine")
    with pytest.raises(StreamwardenError, match=r"public\.new_view exists and is not Streamwarden's"):
        release.add("views/new_view.sql", OURS.replace("some_groups", "new_view")).migrate()
    assert release.ask("select mine from public.new_view") == 1
    release.sql("drop view public.new_view")


def test_a_migration_may_change_columns_that_views_read(release: Release) -> None:
    release.sql("create view analyst.mine as select lag_records from metrics.consumer_group_hourly")
    changed = "alter table metrics.consumer_group_hourly alter column lag_records type numeric;"
    release.add("migrations/9001_numeric.sql", changed)
    assert release.migrate() == ["migrations/9001_numeric.sql"]
    for view in ("analyst.mine", "public.some_groups"):
        assert release.ask(f"select pg_typeof(lag_records) from (select) as one left join {view} on true") == "numeric"


@pytest.mark.parametrize("name", ["migrations/0001_inventory.sql", "views/volumes.sql", "functions/far_behind.sql"])
def test_an_older_release_does_not_change_a_newer_warehouse(release: Release, name: str) -> None:
    release.add("views/some_groups.sql", NARROWER).remove(name, retired=False)
    for asked in (migrate, require_migrated):
        with pytest.raises(
            StreamwardenError, match=f"migrated by a newer release: this release does not have sql/{name}"
        ):
            asked(release.warehouse)
    assert release.columns("public.some_groups") == ["cluster", "group_id", "lag_records"]


def test_a_foreign_function_of_the_same_signature_is_not_replaced(release: Release) -> None:
    new = FUNCTION.replace("far_behind", "near")
    for theirs in ("returns boolean language sql as 'select false'", "returns text language sql as $$select 'x'$$"):
        release.sql(f"create function public.near(whatever double precision) {theirs}")
        with pytest.raises(
            StreamwardenError,
            match=r"public\.near\(double precision\) exists and is not .*`alter function public\.near",
        ):
            release.add("functions/near.sql", new).migrate()
        assert release.ask("select public.near(1)::text") in ("false", "x")
        release.sql("drop function public.near(double precision)")
    assert release.migrate() == ["functions/near.sql"]
    assert release.add("functions/near.sql", new.replace("lag >", "lag <")).migrate() == ["functions/near.sql"]


WIDER = OURS.replace("  lag_records  -- Lag", "  lag_records,  -- Lag\n  hour  -- The hour (UTC)")
NEWER = "migrated by a newer release: this release has an older text of sql/views/some_groups.sql"


def _expect_refusal(release: Release, message: str) -> None:
    columns = release.columns("public.some_groups")
    for asked in (migrate, require_migrated):
        with pytest.raises(StreamwardenError, match=rf"{message}.*`streamwarden migrate --back`"):
            asked(release.warehouse)
    assert release.columns("public.some_groups") == columns


def test_an_older_release_recognizes_files_that_a_newer_one_replaced(release: Release) -> None:
    release.add("views/some_groups.sql", WIDER).remove("views/a_lagging_groups.sql").migrate()
    _expect_refusal(release.add("views/some_groups.sql", OURS), NEWER)
    _expect_refusal(release.add("views/a_lagging_groups.sql", ON_OURS), rf"{NEWER} and 1 more")


def test_a_downgrade_with_back_can_be_upgraded_again(release: Release) -> None:
    release.add("views/some_groups.sql", WIDER).migrate()
    release.add("views/some_groups.sql", NARROWER).migrate()
    release.add("views/some_groups.sql", OURS)
    assert release.migrate(back=True) == ["views/some_groups.sql"]
    assert release.columns("public.some_groups") == ["cluster", "group_id", "lag_records"]
    assert release.add("views/some_groups.sql", WIDER).migrate() == ["views/some_groups.sql"]
    _expect_refusal(release.add("views/some_groups.sql", OURS), NEWER)


def test_a_newer_release_may_restore_an_older_text(release: Release) -> None:
    release.add("views/some_groups.sql", WIDER).migrate()
    release.add("views/some_groups.sql", OURS).add("functions/far_behind.sql", FUNCTION.replace("stable", "volatile"))
    assert release.migrate() == ["functions/far_behind.sql", "views/some_groups.sql"]
    _expect_refusal(release.add("views/some_groups.sql", WIDER), NEWER)


def test_a_due_migration_is_an_error_that_names_the_file(release: Release) -> None:
    require_migrated(release.warehouse)
    release.add("views/some_groups.sql", NARROWER)
    with pytest.raises(
        StreamwardenError, match=r"is not up to date \(sql/views/some_groups\.sql\): run `streamwarden mig"
    ):
        require_migrated(release.warehouse)
