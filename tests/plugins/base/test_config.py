"""The config file: valid files load; every error is one line with file, key, and reason, and without secrets."""

from itertools import pairwise
from pathlib import Path

import pytest
from streamwarden.base.config import Config, load_config
from streamwarden.base.errors import StreamwardenError
from streamwarden.base.paths import PROJECT_ROOT


def write(folder: Path, text: str) -> Path:
    file = folder / "streamwarden.yaml"
    file.write_text(text)
    return file


ROUNDUP = "kind: roundup, url: 'https://t'"
ACCOUNT = "{account: '111122223333', regions: [us-east-1]}"
CLUSTER = "kafka: [{name: c, bootstrap_servers: b}]"
JVM = "{role: broker, cluster: c, url: 'http://h:1/x'}"


def test_the_example_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "k")
    monkeypatch.setenv("REGISTRY_PASSWORD", "r")
    monkeypatch.setenv("TRACKER_PASSWORD", "t")
    config = load_config(PROJECT_ROOT / "streamwarden.example.yaml")
    assert config.kafka[0].client["sasl.password"] == "k"
    assert "'k'" not in repr(config.tickets)


def test_an_owner_is_a_pattern_only_if_it_begins_with_a_caret(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "tickets: {routes: [{owner: 'team (a', to: [console]}]}"))
    (route,) = config.tickets.routes
    assert route.matches("team (a", "critical", None) and not route.matches("team (ab", "critical", None)


def test_an_empty_file_is_a_valid_config(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, "")).tickets.trackers == {}


def test_only_true_and_false_are_booleans(tmp_path: Path) -> None:
    text = """
        kafka: [{name: no, bootstrap_servers: on, client: {yes: off, 'n': y}}]
        detectors:
          disk_filling:
            enabled: no
            exceptions:
              - {where: {owner: off}, off: true, why: A test cluster}
              - {where: {owner: b}, off: Yes, why: Another}
              - {where: {owner: c}, off: FALSE, params: {kept: off, seen: true}, why: A third}
    """
    config = load_config(write(tmp_path, text))
    assert (config.kafka[0].name, config.kafka[0].client) == ("no", {"yes": "off", "n": "y"})
    settings = config.detectors["disk_filling"]
    assert settings.enabled is False
    assert [one.off for one in settings.exceptions] == [True, True, False]
    assert settings.exceptions[0].where == {"owner": "off"}
    assert settings.exceptions[2].params == {"kept": "off", "seen": True}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("warehouse: {data_folder: true}", "warehouse.data_folder: is not a valid path"),
        (
            "detectors: {x: {exceptions: [{where: {owner: true}, off: true, why: w}]}}",
            "write it in quotes (value: True)",
        ),
        ("detectors: {x: {enabled: offf}}", "detectors.x.enabled: must be a valid boolean"),
        ("tikets: {}", "tikets: unknown key; did you mean 'tickets'?"),
        ("gathering: {settle_minutes: soon}", "gathering.settle_minutes: must be a valid integer (value: 'soon')"),
        ("gathering: {settle_minutes: soon}", "(value: 'soon')"),
        ("kafka: [{name: a, bootstrap_servers: b, clint: {}}]", "kafka.0.clint: unknown key; did you mean 'client'?"),
        ("aws: [{account: '12', regions: [x]}]", "aws.0.account:"),
        (
            "jmx: [{role: app, cluster: c, url: 'http://u:secret@h:1/x', app: a}]",
            "jmx endpoint app of c at http://h:1/x names a cluster that is not under `kafka`",
        ),
        ("tickets: {sink: roundup}", "tickets: `sink` and its address are now an entry under `trackers`"),
        ("tickets: {trackers: {a: {kind: roundup, password: p}}}", "tickets.trackers.a.url: is required"),
        (
            "tickets: {trackers: {a: {kind: fax}}}",
            "tickets.trackers.a.kind: 'fax' is none of ",
        ),
        (
            f"tickets: {{trackers: {{a: {{{ROUNDUP}}}}}}}",
            "trackers.a: needs `user` and `password` (as ${NAME}), or `conn",
        ),
        (f"tickets: {{trackers: {{a: {{{ROUNDUP}, password: p, connection: c}}}}}}", "and not both"),
        (
            f"tickets: {{trackers: {{a: {{{ROUNDUP}, password: p}}}}, routes: [{{to: [b]}}]}}",
            "tickets: tracker 'b' is not under `trackers`",
        ),
        (
            "tickets: {routes: [{owner: '^(', to: [console]}]}",
            "tickets.routes.0.owner: not a regular expression",
        ),
        (
            "jobs: {changelog_patterns: ['(?P<job>.+']}",
            "jobs.changelog_patterns.0: not a regular expression",
        ),
        (
            "jobs: {changelog_patterns: ['(?P<job>.+)-log', '.+-changelog']}",
            "jobs.changelog_patterns.1: '.+-changelog' has no group (?P<job>…) for the name of the job",
        ),
        (
            "latency_targets: [{key_pattern: '^(', seconds: 5}]",
            "latency_targets.0.key_pattern: not a regular expression",
        ),
        (
            "latency_targets: [{key_pattern: '^application:', seconds: 0}]",
            "latency_targets.0.seconds: must be greater than 0 (value: 0)",
        ),
        (
            "tickets: {trackers: {a: {kind: roundup, url: 'http://tracker.internal', password: p}}}",
            "trackers.a.url: must begin with https://: credentials are sent there",
        ),
        ("kafka: [{name: a, bootstrap_servers: x}, {name: a, bootstrap_servers: y}]", "duplicate kafka cluster: a"),
        *(
            (f"{section}: [{{key_pattern: '{pattern}', {rest}}}]", f"{section}.0.key_pattern: not a regular expression")
            for section, rest in (("owners", "owner: a"), ("latency_targets", "seconds: 5"))
            for pattern in (
                "^group:(?P<c>demo)/",
                "^group:(?<c>demo)/",
                "(?i:a)",
                "^a*+b",
                "(?>a)b",
                "a{300}",
                "a\\b",
                "(?x)a",
                "^(a)(?(1)b|c)",
                "[[:wrong:]]",
                "a{,3}",
                "(?=a)*",
                "\\x41b",
                "(a",
                "(?s).",
                "^a{1",
                "[[[:<:]]",
                "[a-z-a]",
            )
        ),
        ("a: [", "not YAML: while parsing a flow node"),
        ("a: [", "at line 1, column 5"),
        (
            "aws: [{account: 111122223333, regions: [us-east-1]}]",
            "aws.0.account: must be a valid string: write it",
        ),
        ("- a", "must contain keys and values, not a list"),
        ("kafka: []\njmx: []\n'kafka': []", "line 3: duplicate key 'kafka', first on line 1."),
        (f"aws: [{ACCOUNT}, {ACCOUNT}]", "duplicate aws account: 111122223333"),
        (
            "aws: [{account: '111122223333', regions: [us-east-1, us-east-1]}]",
            "duplicate aws region: 111122223333/us-e",
        ),
        ("aws: [{account: '111122223333', regions: [../../x]}]", "(value: '../../x')"),
        (f"{CLUSTER}\njmx: [{JVM}, {JVM}]", "duplicate jmx endpoint: broker of c at http://h:1/x, broker of c at h"),
        (
            f"{CLUSTER}\njmx: [{JVM}, {{role: app, app: a, cluster: c, url: 'http://u:hunter2@H:1/x/'}}]",
            "duplicate jmx endpoint: broker of c at http://h:1/x, app of c at http://h:1/x/",
        ),
        (
            f"kafka: [{{name: c, bootstrap_servers: b}}, {{name: d, bootstrap_servers: e}}]\n"
            f"jmx: [{JVM}, {{role: broker, cluster: d, url: 'http://h:1/x'}}]",
            "duplicate jmx endpoint: broker of c at http://h:1/x, broker of d at http://h:1/x",
        ),
        (
            f"detectors: {{x: {{params: {{y: 1{'0' * 400}}}}}}}",
            "line 1: 10000000000000000000… is not a finite number",
        ),
        (f"gathering: {{jmx_samples: 0x{'f' * 9000}}}", "line 1: 0xffffffffffffffffff… is not a finite number"),
        ("gathering: {jmx_sample_seconds: .inf}", "line 1: .inf is not a finite number"),
        ("gathering: {jmx_sample_seconds: .nan}", "line 1: .nan is not a finite number"),
        ("gathering: {jmx_sample_seconds: '1e999'}", "gathering.jmx_sample_seconds: must be a finite number"),
        ("reports: {mail_from: 2026-13-01}", "not YAML: a value does not match its type: month must be"),
        ("ui_url: ${NOT_SET_ANYWHERE}", "ui_url: environment variable NOT_SET_ANYWHERE is not set"),
        (
            "kafak: [{client: {sasl.password: '${NOT_SET_ANYWHERE}'}}]",
            "kafak: unknown key; did you mean 'kafka'?; kafak.0.client.sasl.password: environment variable NOT_SET_ANY",
        ),
        ("gathering: {frobnicate: 1}", "gathering.frobnicate: unknown key; see docs/config.md"),
        (
            "tickets: {trackers: {a: {kind: roundup, passwrd: x}}}",
            "tickets.trackers.a.passwrd: unknown key; did you mean 'password'?; tickets.trackers.a.url: is required",
        ),
    ],
)
def test_an_error_is_one_line(tmp_path: Path, text: str, expected: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(StreamwardenError) as error:
        load_config(file)
    assert str(error.value).startswith(str(file))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "ui_url: 'URL'",
        "tickets: {trackers: {a: {kind: roundup, url: 'URL'}}}",
        "kafka: [{name: a, bootstrap_servers: b, schema_registry: {url: 'URL'}}]",
        f"{CLUSTER}\njmx: [{{role: broker, cluster: c, url: 'URL'}}]",
        "warehouse: {url: 'URL'}",
    ],
)
@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "file:///etc/passwd", "mysql://u:hunter2@h/x", "//u:hunter2@h", "u:hunter2@h", "http:///x"],
)
def test_an_invalid_url_is_refused(tmp_path: Path, text: str, url: str) -> None:
    with pytest.raises(StreamwardenError, match=r"url: must be(gin| an address that begins) with ") as error:
        load_config(write(tmp_path, text.replace("URL", url)))
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "text", ["ui_url: 'https://u:hunter2@h'", "tickets: {trackers: {a: {kind: roundup, url: 'http://hunter2@h'}}}"]
)
def test_a_password_in_a_url_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(StreamwardenError, match="set them as `user` and `password`") as error:
        load_config(write(tmp_path, text))
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "url", ["postgresql://u:p@h1:5432,h2:5432/d?sslmode=require", "postgres:///d?host=/run/postgresql"]
)
def test_the_warehouse_accepts_any_postgresql_url(tmp_path: Path, url: str) -> None:
    assert load_config(write(tmp_path, f"warehouse: {{url: '{url}'}}")).warehouse.url == url


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in pairwise("abcdefghijk")
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BOMB, ": line 1: more than 500,000 keys and values with aliases (*name) expanded."),
        ("a: &a [*a]", ": line 1: more than 500,000 keys and values"),
        ("a: &a {b: *a}", ": line 1: more than 500,000 keys and values"),
        ("[" * 5000, ": not YAML: the file is nested too deeply"),
    ],
    ids=["bomb", "list that contains itself", "mapping that contains itself", "deep"],
)
@pytest.mark.timeout(20)
def test_a_file_that_expands_without_limit_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(StreamwardenError) as error:
        load_config(write(tmp_path, text))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "maximum"),
    [
        ("warehouse.sample_retention_days", 36_500),
        ("warehouse.fact_retention_days", 36_500),
        ("warehouse.retention_days.a", 36_500),
        ("gathering.settle_minutes", 1440),
        ("gathering.jmx_samples", 1000),
        ("gathering.jmx_sample_seconds", 3600),
        ("gathering.changelog_sample_values", 100_000_000),
        ("tickets.reopen_within_hours", 8784),
        ("tickets.max_new_per_run", 10_000),
    ],
)
def test_times_and_counts_have_a_maximum(tmp_path: Path, key: str, maximum: int) -> None:
    section, *rest = key.split(".")
    text = f"{section}: {{{': {'.join(rest)}: %s{'}' * len(rest)}"
    load_config(write(tmp_path, text % maximum))
    with pytest.raises(StreamwardenError, match=rf"{key}: must be less than or equal to {maximum} \(value: 99999"):
        load_config(write(tmp_path, text % 99999999999))


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(group|topic):orders-prod/billing-",
        r"^group:demo/\\mbill\\M",
        "^[[:alpha:]]+[0-9]{1,3}$",
        r"(?i)^a.*?\\d",
        "(?!x)a",
        "[[:<:]]a[^-a-z_-]\\{1",
    ],
)
def test_a_pattern_is_a_regular_expression_of_postgresql(tmp_path: Path, pattern: str) -> None:
    text = f"owners: [{{key_pattern: '{pattern}', owner: a}}]"
    assert load_config(write(tmp_path, text)).owners[0].owner == "a"


def test_a_host_may_have_several_endpoints_at_one_url(tmp_path: Path) -> None:
    node = "{role: node, cluster: c, protocol: prometheus, url: 'http://h:1/x'}"
    api = "role: broker, cluster: c, protocol: prometheus_api, url: 'http://p'"
    jvms = f"{JVM}, {node}, {{{api}, match: 'i=\"1\"'}}, {{{api}, match: 'i=\"2\"'}}"
    assert len(load_config(write(tmp_path, f"{CLUSTER}\njmx: [{jvms}]")).jmx) == 4


def test_yaml_aliases_are_accepted(tmp_path: Path) -> None:
    text = """
        kafka:
          - {name: a, bootstrap_servers: a, client: &secured {security.protocol: SSL, client.id: one}}
          - {name: b, bootstrap_servers: b, client: {<<: *secured, client.id: two}}
    """
    clusters = load_config(write(tmp_path, text)).kafka
    assert clusters[1].client == {"security.protocol": "SSL", "client.id": "two"}


def test_an_error_shows_the_text_of_the_file_not_the_environment_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKER_PASSWORD", "hunter2")
    with pytest.raises(StreamwardenError) as error:
        load_config(write(tmp_path, "ui_url: ${TRACKER_PASSWORD}"))
    assert str(error.value).endswith("(value: '${TRACKER_PASSWORD}')")


def test_an_unreadable_file_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(StreamwardenError, match=r": cannot be read: Is a directory\.$"):
        load_config(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("ui_url: größe".encode("latin-1"))
    with pytest.raises(StreamwardenError, match=r"latin\.yaml: is not UTF-8 text"):
        load_config(tmp_path / "latin.yaml")


def test_an_invalid_secret_is_not_shown(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "tickets: {trackers: {a: {kind: roundup, url: 'https://u', password: [hunter2]}}}\n"
        "kafka: [{name: a, bootstrap_servers: 1}]\n"
        "confluent: [{cluster: a, id: lkc-a, key: k, secret: 77007700}]",
    )
    with pytest.raises(StreamwardenError) as error:
        load_config(file)
    assert "hunter2" not in str(error.value)
    assert "confluent.0.secret" in str(error.value) and "77007700" not in str(error.value)


def test_a_missing_file_is_an_error_with_the_action(tmp_path: Path) -> None:
    with pytest.raises(StreamwardenError, match=r"no such config file\. Create it with `streamwarden init`"):
        load_config(tmp_path / "none.yaml")


def test_a_config_that_is_sent_as_json_is_the_same_with_its_exceptions() -> None:
    exception = {"where": {"volume_id": "vol-1"}, "off": True, "why": "a test volume"}
    config = Config.model_validate({"detectors": {"ebs_volume_starving": {"exceptions": [exception]}}})
    sent = config.model_dump_json(exclude_unset=True, by_alias=True)
    assert Config.model_validate_json(sent) == config
