"""The command line: help of every command, exit codes, one-line errors."""

from __future__ import annotations

import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import sqlalchemy as sa
from streamwarden.base.config import CONFIG_ENV, WAREHOUSE_ENV
from streamwarden.cli import main as cli
from streamwarden.cli import shared

COMMANDS = (
    [], ["init"], ["run"], ["migrate"], ["docs"], ["report"], ["backtest"], ["ask"], ["tickets"], ["tickets", "list"],
    ["tickets", "mute"], ["tickets", "unmute"], ["detectors"], ["detectors", "list"], ["detectors", "explain"],
    ["detectors", "new"],
    ["config"], ["config", "check"], ["warehouse"], ["warehouse", "url"], ["warehouse", "psql"], ["warehouse", "stop"],
    ["warehouse", "prices"],
    ["plan"], ["plan", "removal"], ["whatif"], ["whatif", "topic"],
)  # fmt: skip


def streamwarden(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("streamwarden")
    base = {"PATH": f"{program.parent}:/usr/bin:/bin", "COLUMNS": "200"}
    return subprocess.run([program, *arguments], env=base | environment, capture_output=True, text=True, timeout=60)


def in_this_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line in this process: starting a Python takes longer than most commands."""
    output, errors = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
        patch.setattr(sys, "argv", ["streamwarden", *arguments])
        patch.setattr(shared.out, "width", 200)
        for name, value in {"COLUMNS": "200", **environment}.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            cli.main()
    return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), output.getvalue(), errors.getvalue())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command: list[str]) -> None:
    done = in_this_process(*command, "--help")
    assert done.returncode == 0
    assert "Usage: " in done.stdout and " ".join([*command, "[OPTIONS]"]) in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--config", "/nope", "run"], "--config /nope: no such config file"),
        (["config", "check", "/nowhere.yaml"], "/nowhere.yaml: no such config file"),
        (["detectors", "explain", "consumer_lagging"], "did you mean 'consumer_group_lagging'?"),
        (["detectors", "explain", "nothing"], "nothing: no such detector; `streamwarden detectors list` lists all."),
        (["run", "--hour", "soon"], "hour 'soon': not a time; write it like 2026-11-21T05:00."),
        (["run", "--hour", "2026-11-21T05:30"], "must be the start of an hour, like 2026-11-21T05:00"),
        (["run", "--hour", "2099-01-01T00:00"], "--hour 2099-01-01T00:00: cannot run an hour that has not begun."),
        (["run", "--app", "nothing"], "--app nothing: no such app. Available: "),
        (["plan", "removal", "a\udcff"], "'a\\udcff': is not text in UTF-8."),
        (["report", "--day", "soon"], "--day soon: not a day; write it like 2026-11-20."),
        (["report", "--day", "9999-12-31"], "--day 9999-12-31: must be between 1970 and 2261."),
        (["report", "--week", "--day", "0001-01-01"], "--day 0001-01-01: must be between 1970 and 2261."),
        (
            ["tickets", "mute", "f", "--reason", "r", "--until", "0001-01-01T00:00+05:00"],
            "--until 0001-01-01T00:00+05:00: not a time; write it like 2026-12-01",
        ),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(arguments: list[str], expected: str) -> None:
    done = in_this_process(*arguments)
    assert done.returncode == 1
    assert expected in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_wrong_usage_is_exit_code_2() -> None:
    assert streamwarden("run", "--colour", "red").returncode == 2


def test_an_unreachable_warehouse_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("")
    url = "postgresql://nobody:secret-word@127.0.0.1:9/none"
    done = streamwarden("migrate", **{CONFIG_ENV: str(tmp_path / "s.yaml"), WAREHOUSE_ENV: url})
    assert done.returncode == 1
    assert done.stderr.startswith("streamwarden: warehouse: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert "secret-word" not in done.stderr


def test_an_older_release_only_downgrades_with_back(
    warehouse: sa.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.yaml").write_text("")
    monkeypatch.setenv(CONFIG_ENV, str(tmp_path / "s.yaml"))
    with warehouse.begin() as connection:
        newer = "update public.schema_migration set checksum = 'x', superseded = array[checksum] where name = '%s'"
        connection.exec_driver_sql(newer % "views/volumes.sql")
    done = in_this_process("migrate")
    assert done.returncode == 1
    assert "this release has an older text of sql/views/volumes.sql. Nothing was changed" in done.stderr
    done = in_this_process("migrate", "--back")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "applied views/volumes.sql")


def test_a_valid_config_prints_what_it_watches(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("kafka: [{name: a, bootstrap_servers: 'b:9092'}]\n")
    done = streamwarden("config", "check", str(file))
    assert done.returncode == 0
    assert "1 Kafka cluster," in done.stdout
    assert "warning" not in done.stdout


@pytest.mark.parametrize("text", ["", "# soon", "reports: {mail_from: a@b}", "jmx_files: [{path: /nowhere/*.json}]"])
def test_a_config_that_watches_nothing_is_a_warning(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    done = in_this_process("config", "check", str(tmp_path / "s.yaml"))
    assert done.returncode == 0
    assert "warning: nothing is watched: " in done.stdout


def test_a_cluster_with_two_names_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("kafka: [{name: a, bootstrap_servers: 'x:1,y:1'}, {name: b, bootstrap_servers: 'Y:1, x:1'}]")
    done = in_this_process("config", "check", str(file))
    assert done.returncode == 0
    assert "warning: kafka clusters 'a' and 'b' have the same bootstrap_servers." in done.stdout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ebs_prices: /nowhere.csv", "ebs_prices: /nowhere.csv: No such file or directory."),
        (
            "kafka: [{name: a, bootstrap_servers: b, client: {sasl.pasword: c}}]",
            "kafka cluster 'a': No such configuration property: \"sasl.pasword\"",
        ),
        (
            "detectors: {consumer_rogue: {params: {spike_mads: -1}}}",
            "detectors.consumer_rogue.params.spike_mads: must be 0 or more and finite, not -1.",
        ),
        (
            "msk: [{account: '111122223333', regions: [us-east-1], client: {nope: x}}]",
            "kafka cluster 'msk.0': No such configuration property: \"nope\"",
        ),
        ("causes: {params: {nope: 1}}", "causes.params.nope: unknown parameter"),
    ],
)
def test_files_clients_and_parameters_named_in_a_config_are_checked(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    done = in_this_process("config", "check", str(tmp_path / "s.yaml"))
    assert done.returncode == 1
    assert expected in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


MAIL = "host: mail.acme.example, mail_from: a@b.example, mail_to: [c@d.example]"
AWS = "account: '111122223333', regions: [us-east-1]"
KAFKA = "kafka: [{name: a, bootstrap_servers: 'b:1'"
GLUE = "schema_registry: {kind: glue, account: '111122223333'"
BROKER = "role: broker, cluster: a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("reports: {mail_to: [team]}", "reports.mail_to.0: must be a mail address, name@domain"),
        ('reports: {mail_to: ["a@b.example\\nBcc: c@d.example"]}', "reports.mail_to.0: must be a mail address"),
        ('reports: {mail_from: "a@b\\r\\n"}', "reports.mail_from: must be a mail address"),
        ("reports: {mail_to: [a@b@c]}", "reports.mail_to.0: must be a mail address"),
        ("reports: {mail_to: ['a@bücher.example']}", "reports.mail_to.0: must be a mail address"),
        (
            "tickets: {trackers: {a: {kind: mail, host: h, mail_from: a@b.example, mail_to: ['ä@b.example']}}}",
            "tickets.trackers.a.mail_to.0: must be a mail address",
        ),
        (
            f"tickets: {{trackers: {{a: {{kind: mail, {MAIL}, password: p}}}}}}",
            "tickets.trackers.a.password: needs `user`",
        ),
        (
            f"tickets: {{trackers: {{a: {{kind: mail, {MAIL.replace('mail.acme.example', 'smtp://h:25')}}}}}}}",
            "tickets.trackers.a.host: must be a host name without a port; set the port as `port` (value:",
        ),
        (
            "tickets: {trackers: {a: {kind: roundup, url: 'https://t', password: p}}}",
            "tickets.trackers.a.password: needs `user`",
        ),
        (
            "tickets: {trackers: {a: {kind: jira, url: 'https://t', project: OPS, password: p}}}",
            "tickets.trackers.a.password: needs `user`",
        ),
        (
            'tickets: {trackers: {a: {kind: github, repository: a/b, password: "t\\n"}}}',
            "tickets.trackers.a.password: contains a line break",
        ),
        ('prometheus: {token: "0123456789abcdef\\n"}', "prometheus.token: contains a line break"),
        ("prometheus: {token: short}", "prometheus.token: "),
        (
            "tickets: {trackers: {a: {kind: pagerduty, password: p, api_token: t, user: bot}}}",
            "tickets.trackers.a.user: must be the mail address of a PagerDuty user",
        ),
        (
            "tickets: {trackers: {a: {kind: servicenow, url: 'https://t', password: p, fields: {correlation_id: x}}}}",
            "tickets.trackers.a.fields.correlation_id: is set by Streamwarden",
        ),
        (
            "tickets: {routes: [{subject: disks, to: [console]}]}",
            "tickets.routes.0.subject: no detector has this subject; choose one of brokers,",
        ),
        ("kafka: [{name: a, bootstrap_servers: 'http://x/y'}]", "kafka.0.bootstrap_servers: 'http://x/y' is not host:"),
        ("kafka: [{name: a, bootstrap_servers: b}]", "kafka.0.bootstrap_servers: 'b' is not host:port"),
        ("kafka: [{name: a, bootstrap_servers: 'b:1,c:99999'}]", "kafka.0.bootstrap_servers: 'c:99999' is not host:p"),
        ("kafka: [{name: a, bootstrap_servers: 'b:1 c:1'}]", "kafka.0.bootstrap_servers: 'b:1 c:1' is not host:port"),
        ("kafka: [{name: a, bootstrap_servers: 'b:1,,c:1'}]", "kafka.0.bootstrap_servers: '' is not host:port"),
        (
            "kafka: [{name: a, bootstrap_servers: 'b:1', client: {bootstrap.servers: 'c:1'}}]",
            "kafka.0.client.bootstrap.servers: duplicates `bootstrap_servers`",
        ),
        ("kafka: [{name: a/b, bootstrap_servers: 'b:1'}]", "kafka.0.name: must not contain a slash"),
        ('kafka: [{name: "a\\nb", bootstrap_servers: "b:1"}]', "kafka.0.name: must be one line of text"),
        ("owners: [{key_pattern: '^x', owner: \"a\\tb\"}]", "owners.0.owner: must be one line of text"),
        (
            "kafka: [{name: a, bootstrap_servers: 'b:1', schema_registry: {url: 'http://r', password: p}}]",
            "kafka.0.schema_registry.password: needs `user`",
        ),
        (
            "kafka: [{name: a, bootstrap_servers: 'b:1'}]\n"
            "jmx: [{role: broker, cluster: a, url: 'http://h:1', password: p}]",
            "jmx.0.password: needs `user`",
        ),
        (
            "kafka: [{name: a, bootstrap_servers: 'b:1'}]\n"
            "jmx: [{role: broker, cluster: a, url: 'http://h:1', instance_id: vol-1}]",
            "jmx.0.instance_id: is not the id of an EC2 instance; example: i-0123456789abcdef0 (value: 'vol-1')",
        ),
        ("jmx_files: [{path: /etc}]", "jmx_files.0.path: is a folder; set a pattern of files: /etc/*.json"),
        (
            "detectors: {topic_abandoned: {params: {keep: '(?P<a>x)'}}}",
            "detectors.topic_abandoned.params.keep: not a regular expression as PostgreSQL reads it: named groups",
        ),
        ("ebs_prices: /etc", "ebs_prices: /etc: Is a directory."),
        ("reports: {folder: /etc/passwd}", "reports.folder: /etc/passwd is a file; set a folder"),
        ("reports: {folder: /etc/passwd/x}", "reports.folder: /etc/passwd is a file; set a folder"),
        ("warehouse: {data_folder: /etc/passwd}", "warehouse.data_folder: /etc/passwd is a file; set a folder"),
        ("warehouse: {url: 'postgresql://u:p@h:99999/d'}", "warehouse.url: the port must be between 1 and 65535"),
        (
            "warehouse: {retention_days: {metrics.gone: 90}}",
            "warehouse.retention_days.metrics.gone: the warehouse has no partitioned table",
        ),
        (
            f"aws: [{{{AWS}, role_arn: 'arn:aws:iam::999999999999:role/x'}}]",
            "aws.0.role_arn: is a role of account 999999999999; set a role of account 111122223333, or correct `ac",
        ),
        (f"aws: [{{{AWS}, role_arn: streamwarden-read}}]", "aws.0.role_arn: is not the ARN of a role; example: arn:"),
        (f"aws: [{{{AWS}, external_id: x}}]", "aws.0.external_id: is only used with a role"),
        (
            f"aws: [{{{AWS.replace('us-east-1', 'eu-centrl-1')}}}]",
            "aws.0.regions.0: botocore does not know this region",
        ),
        (
            "detectors: {disk_filling: {exceptions: [{where: {owner: b}, off: true, why: w, until: 2020-01-01}]}}",
            "detectors.disk_filling.exceptions.0.until: has expired; remove the exception, or set a later day (value:",
        ),
        (
            "gathering: {jmx_samples: 1000, jmx_sample_seconds: 1000}",
            "gathering.jmx_samples: jmx_samples and jmx_sample_seconds result in 999,000 s of sampling per hour;",
        ),
        (
            f"{KAFKA}, connect: [{{name: x, url: 'http://h', password: p}}]}}]",
            "kafka.0.connect.0.password: needs `user`",
        ),
        (
            f"{KAFKA}, connect: [{{name: x, url: 'http://h', timeout_seconds: 3600}}]}}]",
            "0.timeout_seconds: must be at m",
        ),
        (
            f"{KAFKA}, {GLUE}, region: us-mars-1}}}}]\naws: [{{{AWS}}}]",
            "kafka.0.schema_registry.region: botocore does not know this region",
        ),
        (
            f"{KAFKA}, aws_login: {{account: '999922223333', region: us-east-1}}}}]\naws: [{{{AWS}}}]",
            "kafka.0.aws_login.account: is neither under `aws` nor under `msk`",
        ),
        (
            f"{KAFKA}, client: {{sasl.username: a, sasl.password: b}}}}]",
            "kafka.0.client.sasl.username: has no effect with security.protocol plaintext",
        ),
        ("kafka: [{name: a, bootstrap_servers: '192.168.1.300:9092'}]", "'192.168.1.300:9092' is not host:port"),
        ("kafka: [{name: a, bootstrap_servers: 'a..b:9092'}]", "'a..b:9092' is not host:port"),
        ("kafka: [{name: .., bootstrap_servers: 'b:1'}]", "kafka.0.name: must not be . or ..: browsers remove them"),
        (f"{KAFKA}}}]\njmx: [{{{BROKER}, url: 'rmi://h:1/x'}}]", "jmx.0.url: does not fit `protocol: jolokia`"),
        (f"{KAFKA}}}]\njmx: [{{{BROKER}, protocol: jmx_rmi, url: h}}]", "jmx.0.url: has no port; write host:port"),
        (
            f"{KAFKA}}}]\njmx: [{{{BROKER}, protocol: prometheus_api, url: 'http://h', match: '{{instance=\"h\"}}'}}]",
            "jmx.0.match: must be label matchers without braces",
        ),
        (
            f"{KAFKA}}}]\naws: [{{{AWS}}}]\njmx_ec2: [{{account: '111122223333', tags: {{a: b}}, port: 1,"
            " defaults: {cluster: a, role: app, broker_id: -4}}]",
            "jmx_ec2.0.defaults.broker_id: Input should be greater than or equal to 0 (value: -4); jmx_ec2.0.defaults: "
            "needs `app`, or `from_tags` the tag with it",
        ),
        ("reports: {mail_to: ['.a@b.example']}", "reports.mail_to.0: must be a mail address"),
        ("reports: {mail_to: ['a@b..example']}", "reports.mail_to.0: must be a mail address"),
        (f"reports: {{mail_to: ['{'a' * 65}@b.example']}}", "reports.mail_to.0: must be a mail address"),
        (
            f"tickets: {{trackers: {{a: {{kind: mail, {MAIL}, port: 465}}}}}}",
            "a.security: does not fit port 465: set `tls`",
        ),
        (
            "tickets: {trackers: {a: {kind: servicenow, url: 'https://t/?x=1', user: 'a:b', password: p}}}",
            "tickets.trackers.a.user: must not contain a colon: in HTTP basic authentication it begins the password "
            "(value: 'a:b'); tickets.trackers.a.url: must not contain ? or #",
        ),
        (
            "tickets: {trackers: {a: {kind: github, url: 'https://github.com', repository: a/b, password: p}}}",
            "tickets.trackers.a.url: is not the address of the API: remove this key",
        ),
        (
            f"{KAFKA}}}]\nconfluent: [{{cluster: b, id: lkc-abc12, key: 'k:x', secret: \"hunter2\\n\"}}]",
            "confluent.0.secret: contains a line break, leading or trailing white space, or a non-ASCII character;"
            " remove it: HTTP headers do not allow it; confluent.0.key: must not contain a colon: in HTTP basic"
            " authentication it begins the password (value: 'k:x'); confluent.0.cluster: no cluster under `kafka`"
            " has this name;"
            " clusters: a (value: 'b').",
        ),
        ("ui_url: 'http://h:8080/#x'", "ui_url: must not contain ? or #: paths are appended to it"),
        ("owners: [{owner: a, key_pattern: '^(topic|grp):x'}]", "owners.0.key_pattern: no key begins with grp: here"),
        (
            "latency_targets: [{seconds: 1, key_pattern: '^group:x'}]",
            "no key begins with group: here; choose from appl",
        ),
        ("warehouse: {url: 'postgresql://h/d?nope=1'}", "warehouse.url: libpq refuses it: invalid URI query parameter"),
        ("warehouse: {url: 'postgresql://h/d?sslmode=sure'}", "warehouse.url: has an unknown sslmode; choose one of"),
    ],
)
def test_an_invalid_config_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    done = in_this_process("config", "check", str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"streamwarden: {file}: ") or "ebs_prices" in text or "keep" in text
    assert expected in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "reports: {mail_from: 'Stream Warden <sw@acme.example>', mail_to: [a.b+c@localhost]}",
        "kafka: [{name: orders prod, bootstrap_servers: 'b-1.x_y.internal:9092, [::1]:9092,10.0.0.1:65535'}]",
        "aws: [{account: '111122223333', regions: [cn-north-1, us-gov-west-1],"
        " role_arn: 'arn:aws-cn:iam::111122223333:role/a/b', external_id: xy}]",
        "warehouse: {url: 'postgresql://u:p@h1:5432,h2:5432/d', retention_days: {metrics.partition_hourly: 90}}",
        f"tickets: {{trackers: {{a: {{kind: mail, {MAIL}}}}}}}",
        "detectors: {disk_filling: {exceptions: [{where: {owner: b}, off: true, why: w, until: 2999-01-01}]}}",
        "warehouse: {url: 'postgresql://u@h/d?sslmode=verify-full&aws_iam=true'}",
        "warehouse: {url: 'postgresql://u@h:6432/d?pooler=transaction&sslmode=require'}",
        "tickets: {trackers: {a: {kind: mail, host: localhost, security: none, mail_from: a@b.c, mail_to: [a@b.c]}}}",
        "owners: [{owner: a, key_pattern: '^(?:topic|group):x'}, {owner: b, key_pattern: '^demo'}]",
        f"{KAFKA}}}]\njmx: [{{{BROKER}, protocol: prometheus_api, url: 'http://h',"
        " match: 'job=\"a\", instance=~\"b,{c}.*\",'}, {role: broker, cluster: a, protocol: jmx_rmi, url: 'h:1'}]",
    ],
)
def test_a_valid_config_is_accepted(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.yaml").write_text(text)
    done = in_this_process("config", "check", str(tmp_path / "s.yaml"))
    assert (done.returncode, done.stderr) == (0, "")


def test_explain_prints_commands_for_psql() -> None:
    done = streamwarden("detectors", "explain", "consumer_rogue", "--hour", "2026-11-21T05:00")
    assert done.returncode == 0
    assert "\\set hour '''2026-11-21 05:00+00'''" in done.stdout
    assert "\\i sql/detectors/consumers/consumer_rogue.sql" in done.stdout


def test_psql_gets_the_password_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("")
    psql = tmp_path / "psql"
    psql.write_text('#!/bin/sh\necho "$PGPASSWORD"; printf "%s\\n" "$@"\n')
    psql.chmod(0o755)
    environment = {
        CONFIG_ENV: str(tmp_path / "s.yaml"),
        WAREHOUSE_ENV: "postgresql://u:p%40ss@h:5432/d?sslmode=require",
        "PATH": f"{tmp_path}:/usr/bin:/bin",
    }
    done = streamwarden("warehouse", "psql", "-c", "select 1", **environment)
    password, address, *rest = done.stdout.splitlines()
    assert (password, rest) == ("p@ss", ["-c", "select 1"])
    assert sorted(address.split()) == ["dbname=d", "host=h", "port=5432", "sslmode=require", "user=u"]
