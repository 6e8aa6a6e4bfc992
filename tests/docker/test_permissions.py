"""The IAM policies in the docs list exactly the API actions that the sources call."""

from __future__ import annotations

import ast
import json
from functools import cache

import botocore.session
from botocore import xform_name
from streamwarden.base.paths import PROJECT_ROOT

from tests.docker.documented import block

SERVICES = ("autoscaling", "ec2", "cloudwatch", "sts", "kafka", "secretsmanager", "pricing")
NEEDS_NO_PERMISSION = {"sts:GetCallerIdentity"}


def test_the_policies_allow_what_is_called_and_nothing_else() -> None:
    allowed = {
        action for label in ("iam-read", "iam-assume", "iam-msk", "iam-prices") for action in _actions(block(label))
    }
    assert {action for action in allowed if not action.startswith("kafka-cluster:")} == _called()
    assert _actions(block("iam-trust")) == {"sts:AssumeRole"}


def test_roles_are_taken_with_an_external_id_only() -> None:
    [trust] = json.loads(block("iam-trust"))["Statement"]
    assert trust["Condition"]["StringEquals"]["sts:ExternalId"]
    [assume] = json.loads(block("iam-assume"))["Statement"]
    assert assume["Resource"].endswith(":role/streamwarden-read")


def _actions(policy: str) -> set[str]:
    found: set[str] = set()
    for statement in json.loads(policy)["Statement"]:
        assert statement["Effect"] == "Allow"
        actions = statement["Action"]
        found |= {actions} if isinstance(actions, str) else set(actions)
    return found


def _called() -> set[str]:
    """Actions behind every client method that a source calls, or names where it hands one on."""
    found: set[str] = set()
    for file in (PROJECT_ROOT / "spark_apps").rglob("*.py"):
        text = file.read_text()
        if "boto3" in text or "aws_client" in text:
            for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
                names = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
                names += [call.func.attr] if isinstance(call.func, ast.Attribute) else []
                found |= {action for name in names for action in _by_method().get(name, ())}
    return found - NEEDS_NO_PERMISSION


@cache
def _by_method() -> dict[str, set[str]]:
    session = botocore.session.get_session()
    methods: dict[str, set[str]] = {}
    for service in SERVICES:
        for operation in session.get_service_model(service).operation_names:
            methods.setdefault(xform_name(operation), set()).add(f"{service}:{operation}")
    return methods
