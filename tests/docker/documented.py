"""Blocks of docs/deploy.md and docs/connect by the comment before them, so that tests check them.

A label behind the language would hide the next headings from the documentation site.
"""

from __future__ import annotations

import argparse
import re
import shlex

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from streamwarden.base.paths import PROJECT_ROOT

DOCS = PROJECT_ROOT / "docs"
DEPLOY = DOCS / "deploy.md"
PAGES = (DEPLOY, *sorted((DOCS / "connect").glob("*.md")))


def block(label: str) -> str:
    """The one code block that carries this label."""
    text = "\n".join(page.read_text() for page in PAGES)
    [found] = re.findall(rf"^<!-- {label} -->\n\n```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return str(found)


def bindings_of(command: str) -> list[AclBinding]:
    """What a `kafka-acls.sh … --add` grants."""
    parser = argparse.ArgumentParser()
    for option in ("--bootstrap-server", "--command-config", "--allow-principal", "--topic", "--group"):
        parser.add_argument(option)
    parser.add_argument("--operation", action="append")
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--resource-pattern-type", default="literal")
    parser.add_argument("--add", action="store_true", required=True)
    output = parser.parse_args(shlex.split(command)[1:])
    kind, name = (ResourceType.TOPIC, output.topic) if output.topic else (ResourceType.GROUP, output.group)
    if output.cluster:
        kind, name = ResourceType.BROKER, "kafka-cluster"
    pattern = ResourcePatternType[output.resource_pattern_type.upper()]
    operations = {"Describe": "DESCRIBE", "DescribeConfigs": "DESCRIBE_CONFIGS", "Read": "READ"}
    allow = AclPermissionType.ALLOW
    return [
        AclBinding(kind, name, pattern, output.allow_principal, "*", AclOperation[operations[operation]], allow)
        for operation in output.operation
    ]
