"""Jar sets: fetched once, only as locked; every error is one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo.jar_set import SETTINGS_ENV, JarSet, ensure, write_locks
from demo.jars import ALL
from demo.process import free_port
from streamwarden.base.errors import StreamwardenError

from spark_apps.runtime.class_archive import java

SETTINGS = """<ivysettings><settings defaultResolver="mirror"/><resolvers>
<ibiblio name="mirror" m2compatible="true" root="{}/"/></resolvers></ivysettings>"""
POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>org.example</groupId><artifactId>tool</artifactId><version>1.0</version></project>"""


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JarSet:
    """A set of one jar, in a mirror that is a folder, with an empty cache."""
    module = jar_in(tmp_path).parent
    module.mkdir(parents=True)
    (module / "tool-1.0.pom").write_text(POM)
    jar_in(tmp_path).write_bytes(b"first")
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(SETTINGS.format((tmp_path / "mirror").as_uri()))
    monkeypatch.setenv(SETTINGS_ENV, str(settings))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return JarSet("tools", ("org.example:tool:1.0",), transitive=False, lock=tmp_path / "jars.lock")


def jar_in(folder: Path) -> Path:
    return folder / "mirror" / "org" / "example" / "tool" / "1.0" / "tool-1.0.jar"


@pytest.mark.slow
def test_a_set_is_fetched_once_and_then_only_looked_at(jars: JarSet, tmp_path: Path) -> None:
    write_locks(jars)
    assert [path.name for path in ensure(jars)] == ["tool-1.0.jar"]
    jar_in(tmp_path).unlink()
    assert [path.read_bytes() for path in ensure(jars)] == [b"first"]
    assert [path.name for path in (tmp_path / "cache/streamwarden/jars").iterdir() if path.is_dir()] == ["tools"]


@pytest.mark.slow
def test_a_jar_that_is_not_the_locked_one_never_reaches_the_cache(jars: JarSet, tmp_path: Path) -> None:
    write_locks(jars)
    jar_in(tmp_path).write_bytes(b"swapped")
    with pytest.raises(StreamwardenError, match=r"^Jar set 'tools': tool-1\.0\.jar is not what jars\.lock locks\."):
        ensure(jars)
    assert not jars.folder.exists()


@pytest.mark.slow
def test_no_network_is_one_line_that_names_the_set_and_the_way_out(jars: JarSet, tmp_path: Path) -> None:
    jars.lock.write_text("00  tools/tool-1.0.jar\n")
    (tmp_path / "ivysettings.xml").write_text(SETTINGS.format(f"http://127.0.0.1:{free_port()}"))
    with pytest.raises(StreamwardenError) as caught:
        ensure(jars)
    assert str(caught.value).startswith("Jar set 'tools' cannot be fetched from Maven Central: ")
    assert SETTINGS_ENV in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_java_home_is_a_one_line_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(StreamwardenError, match="install a JDK 17 or newer, or correct JAVA_HOME"):
        java()


@pytest.mark.parametrize("jars", ALL, ids=lambda jars: jars.name)
def test_the_lock_names_every_module(jars: JarSet) -> None:
    names = jars.locked().keys()
    for module in jars.modules:
        _, artifact, version, *_ = module.split(":")
        assert any(name.startswith(f"{artifact}-{version}") for name in names)
