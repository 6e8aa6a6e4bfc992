"""The wire formats of the strict AWS endpoint: Query and JSON requests in, XML and JSON out, Signature Version 4.

Shapes come from botocore's own service models, so names, required members, enumerations and bounds are AWS's.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.model import ServiceModel, Shape, StructureShape

SERVICES = {
    "monitoring": "cloudwatch",
    "ec2": "ec2",
    "sts": "sts",
    "autoscaling": "autoscaling",
    "kafka": "kafka",
    "secretsmanager": "secretsmanager",
    "glue": "glue",
    "pricing": "pricing",
}
JSON_SERVICES = ("monitoring", "secretsmanager", "glue", "pricing")
REST_SERVICES = ("kafka",)
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>\w+)/(?P<date>\d{8})/(?P<region>[a-z0-9-]+)/(?P<service>[a-z0-9]+)"
    r"/aws4_request, *SignedHeaders=(?P<headers>[a-z0-9;-]+), *Signature=(?P<signature>[0-9a-f]{64})"
)


class AwsError(Exception):
    """An error as the service answers it; `code` is what boto3 shows."""

    def __init__(self, code: str, message: str, status: int = 400):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status = code, message, status


@dataclass(frozen=True)
class Call:
    """One parsed request."""

    service: str
    action: str
    params: dict[str, Any]
    is_json: bool
    is_rest: bool = False


@dataclass(frozen=True)
class Caller:
    """Who calls, and which region they signed for."""

    account: str
    region: str
    arn: str


@cache
def model(service: str) -> ServiceModel:
    return botocore.session.Session().get_service_model(SERVICES[service])


def parse(service: str, headers: Message | Mapping[str, str], body: bytes) -> Call:
    """The action and its checked parameters; raises what the service raises for a request that is wrong."""
    target = headers.get("X-Amz-Target")
    if target is not None and service in JSON_SERVICES:
        return _parse_json(service, target, body)
    fields = dict(parse_qsl(body.decode(), keep_blank_values=True))
    action, version = fields.pop("Action", None), fields.pop("Version", None)
    if action is None:
        raise AwsError("MissingAction", "Could not find operation for the request: it names no Action.")
    if action not in model(service).operation_names or version != model(service).api_version:
        raise AwsError("InvalidAction", f"The action {action} is not valid for this endpoint, version {version}.")
    shape = model(service).operation_model(action).input_shape
    ec2 = service == "ec2"
    params = _from_query(shape, "", fields, ec2) or {} if shape else {}
    if fields and ec2:
        raise AwsError("UnknownParameter", f"The parameter {min(fields)} is not recognized")
    if shape:
        _check(service, shape, params)
    return Call(service, action, params, is_json=False)


def _parse_json(service: str, target: str, body: bytes) -> Call:
    prefix, _, action = target.partition(".")
    if prefix != model(service).metadata["targetPrefix"] or action not in model(service).operation_names:
        raise AwsError("UnknownOperationException", f"{target} is not an operation of this service.", 404)
    try:
        params = json.loads(body or b"{}")
    except ValueError:
        raise AwsError("SerializationException", "The body is not JSON.") from None
    shape = model(service).operation_model(action).input_shape
    if shape:
        _check(service, shape, params)
    return Call(service, action, params, is_json=True)


def parse_rest(service: str, method: str, target: str, body: bytes) -> Call:
    """The same of a REST-JSON service: which operation has this method and path, and its checked parameters."""
    path, _, query = target.partition("?")
    fields = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    for action in model(service).operation_names:
        operation = model(service).operation_model(action)
        if operation.http["method"] != method:
            continue
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(operation.http["requestUri"]))
        if found := re.fullmatch(pattern, path):
            params = _from_rest(operation.input_shape, found.groupdict(), fields, json.loads(body or b"{}"))
            _check_rest(operation.input_shape, params)
            return Call(service, action, params, is_json=False, is_rest=True)
    raise AwsError("NotFoundException", f"{method} {path} is no operation of this service.", 404)


def _from_rest(shape: Shape, of_path: dict[str, str], fields: dict[str, str], body: dict[str, Any]) -> dict[str, Any]:
    wire = {member.serialization.get("name", name): (name, member) for name, member in shape.members.items()}
    params: dict[str, Any] = {}
    for source, location in ((of_path, "uri"), (fields, "querystring"), (body, None)):
        for key, value in source.items():
            name, member = wire.get(key, (None, None))
            if member is None or member.serialization.get("location") != location:
                raise AwsError("BadRequestException", f"The parameter {key} is not recognized.")
            params[name] = _scalar(member, key, unquote(value)) if location else value
    return params


def _check_rest(shape: Shape, params: dict[str, Any]) -> None:
    try:
        _check("kafka", shape, params)
    except AwsError as problem:  # MSK has one code for what is wrong with a request
        raise AwsError("BadRequestException", problem.message) from None


def _from_query(shape: Shape, prefix: str, fields: dict[str, str], ec2: bool) -> Any:
    """Takes what belongs to the shape out of the flat fields; None if there is nothing."""
    if shape.type_name == "structure":
        found = {}
        for name, member in shape.members.items():
            value = _from_query(member, _join(prefix, _query_name(name, member, ec2)), fields, ec2)
            if value is not None:
                found[name] = value
        return found or None
    if shape.type_name == "list":
        items, flat = [], ec2 or shape.serialization.get("flattened")
        root = prefix if flat else _join(prefix, shape.member.serialization.get("name", "member"))
        while (value := _from_query(shape.member, f"{root}.{len(items) + 1}", fields, ec2)) is not None:
            items.append(value)
        return items or None
    return _scalar(shape, prefix, fields.pop(prefix)) if prefix in fields else None


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _query_name(name: str, member: Shape, ec2: bool) -> str:
    if not ec2:
        return member.serialization.get("name", name)
    wire = member.serialization.get("queryName") or member.serialization.get("name", name)
    return wire[0].upper() + wire[1:]


def _scalar(shape: Shape, name: str, text: str) -> Any:
    try:
        match shape.type_name:
            case "integer" | "long":
                return int(text)
            case "double" | "float":
                return float(text)
            case "boolean":
                return {"true": True, "false": False}[text.lower()]
            case "timestamp":
                return datetime.fromisoformat(text).timestamp()
    except (KeyError, ValueError):
        raise AwsError("MalformedInput", f"{text!r} is not a valid {shape.type_name} for {name}") from None
    return text


JSON_TYPES = {
    "structure": dict, "list": list, "string": str, "boolean": bool, "integer": int, "long": int,
    "double": (int, float), "float": (int, float), "timestamp": (int, float),
}  # fmt: skip


def _check(service: str, shape: Shape, value: Any, path: tuple[str, ...] = ()) -> None:
    """Type, required members, unknown members, enumerations, bounds; the paths read as CloudWatch writes them."""
    kind = shape.type_name
    if not isinstance(value, JSON_TYPES[kind]) or (kind in ("integer", "long") and isinstance(value, bool)):
        raise AwsError("SerializationException", f"{_dotted(path) or 'The request'} must be of type {kind}.")
    if kind == "structure":
        _check_structure(service, shape, value, path)
    elif kind == "list":
        for position, item in enumerate(value, 1):
            _check(service, shape.member, item, (*path, str(position), "member"))
    elif service != "ec2":  # EC2 has its own bounds and messages
        _check_bounds(shape, value, path)


def _check_structure(service: str, shape: StructureShape, value: dict[str, Any], path: tuple[str, ...]) -> None:
    for name in shape.required_members:
        if name not in value:
            if service == "ec2":
                raise AwsError("MissingParameter", f"The request must contain the parameter {name}")
            raise _invalid("null", (*path, name), "Member must not be null")
    for name, each in value.items():
        if name not in shape.members:
            raise AwsError("SerializationException", f"{_dotted((*path, name))} is not a member of {shape.name}.")
        _check(service, shape.members[name], each, (*path, name))


def _check_bounds(shape: Shape, value: Any, path: tuple[str, ...]) -> None:
    allowed = shape.metadata.get("enum")
    if allowed and value not in allowed:
        raise _invalid(repr(value), path, f"Member must satisfy enum value set: [{', '.join(allowed)}]")
    size = len(value) if isinstance(value, str) else value
    what = "have length " if isinstance(value, str) else "have value "
    if "min" in shape.metadata and size < shape.metadata["min"]:
        raise _invalid(repr(value), path, f"Member must {what}greater than or equal to {shape.metadata['min']}")
    if "max" in shape.metadata and size > shape.metadata["max"]:
        raise _invalid(repr(value), path, f"Member must {what}less than or equal to {shape.metadata['max']}")
    # Java writes what lies beyond 16 bits as surrogates.
    pattern = shape.metadata.get("pattern", "").replace(r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF")
    if pattern and not re.fullmatch(pattern, value):
        raise _invalid(repr(value), path, f"Member must satisfy regular expression pattern: {pattern}")


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(name[0].lower() + name[1:] for name in path)


def _invalid(value: str, path: tuple[str, ...], constraint: str) -> AwsError:
    return validation_error(
        f"1 validation error detected: Value {value} at '{_dotted(path)}' failed to satisfy constraint: {constraint}"
    )


def answer(call: Call, result: dict[str, Any], request_id: str) -> tuple[str, bytes]:
    """Content type and body of a good answer."""
    if call.is_rest:
        shape = model(call.service).operation_model(call.action).output_shape
        return "application/json", json.dumps(_rest_json(shape, result)).encode()
    if call.is_json:
        version = model(call.service).metadata.get("jsonVersion", "1.0")
        return f"application/x-amz-json-{version}", json.dumps(result).encode()
    operation = model(call.service).operation_model(call.action)
    content = _members(operation.output_shape, result) if operation.output_shape else ""
    namespace = model(call.service).metadata["xmlNamespace"]
    if call.service == "ec2":
        content = f"<requestId>{request_id}</requestId>{content}"
    else:
        wrapper = operation.output_shape.serialization["resultWrapper"]
        content = (
            f"<{wrapper}>{content}</{wrapper}><ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>"
        )
    return "text/xml", f'<{call.action}Response xmlns="{namespace}">{content}</{call.action}Response>'.encode()


def _rest_json(shape: Shape, value: Any) -> Any:
    """A member under its name on the wire; one that the model doesn't have is a mistake of ours."""
    if shape.type_name == "structure":
        return {
            shape.members[name].serialization.get("name", name): _rest_json(shape.members[name], each)
            for name, each in value.items()
            if each is not None
        }
    if shape.type_name == "list":
        return [_rest_json(shape.member, each) for each in value]
    if shape.type_name == "timestamp":
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    return value


def _members(shape: Shape, value: dict[str, Any]) -> str:
    return "".join(_xml(shape.members[name], name, each) for name, each in value.items() if each is not None)


def _xml(shape: Shape, name: str, value: Any) -> str:
    tag = shape.serialization.get("name", name)
    if shape.type_name == "structure":
        inner = _members(shape, value)
    elif shape.type_name == "list":
        inner = "".join(_xml(shape.member, "member", item) for item in value)
    elif shape.type_name == "timestamp":
        at = value if isinstance(value, datetime) else datetime.fromtimestamp(value, UTC)
        inner = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    elif isinstance(value, bool):
        inner = str(value).lower()
    else:
        inner = escape(str(value))
    return f"<{tag}>{inner}</{tag}>"


def error(service: str, is_json: bool, problem: AwsError, request_id: str) -> tuple[dict[str, str], bytes]:
    """Headers and body of an error, as the service writes it."""
    if service in REST_SERVICES:
        headers = {"Content-Type": "application/json", "x-amzn-ErrorType": problem.code}
        return headers, json.dumps({"message": problem.message}).encode()
    if is_json and service in ("secretsmanager", "pricing"):
        body = json.dumps({"__type": problem.code, "Message": problem.message}).encode()
        return {"Content-Type": "application/x-amz-json-1.1"}, body
    if is_json:
        shape = next(
            (each.name for each in model(service).error_shapes if each.error_code == problem.code), problem.code
        )
        headers = {"Content-Type": "application/x-amz-json-1.0"}
        if shape != problem.code:
            headers["x-amzn-query-error"] = f"{problem.code};{'Sender' if problem.status < 500 else 'Receiver'}"
        return headers, json.dumps({"__type": f"com.amazonaws.cloudwatch#{shape}", "message": problem.message}).encode()
    details = f"<Code>{escape(problem.code)}</Code><Message>{escape(problem.message)}</Message>"
    if service == "ec2":
        body = f"<Response><Errors><Error>{details}</Error></Errors><RequestID>{request_id}</RequestID></Response>"
    else:
        details = f"<Error><Type>Sender</Type>{details}</Error>"
        body = f"<ErrorResponse>{details}<RequestId>{request_id}</RequestId></ErrorResponse>"
    return {"Content-Type": "text/xml"}, body.encode()


def signature_is_right(
    found: Mapping[str, str], secret_key: str, path: str, headers: Mapping[str, str], body: bytes, method: str = "POST"
) -> bool:
    """Whether the request was signed with this secret, over its path, query, these headers and this body."""
    signed = {name: headers[name] for name in found["headers"].split(";") if name in headers}
    request = AWSRequest(method=method, url=f"http://{headers['Host']}{path}", headers=signed, data=body)
    request.context["timestamp"] = headers.get("X-Amz-Date", "")
    signer = SigV4Auth(Credentials(found["key"], secret_key), found["service"], found["region"])
    to_sign = signer.string_to_sign(request, signer.canonical_request(request))
    return signer.signature(to_sign, request) == found["signature"]


def validation_error(message: str) -> AwsError:
    return AwsError("ValidationError", message)


def next_token(caller: Caller, params: dict[str, Any], state: list[Any]) -> str:
    """A token for where the next page begins; it is good for this caller and this request alone."""
    return base64.urlsafe_b64encode(json.dumps([_digest(caller, params), state]).encode()).decode()


def resume(caller: Caller, params: dict[str, Any], code: str) -> list[Any] | None:
    """What the request's NextToken says; None without one, and the service's error if it belongs elsewhere."""
    if "NextToken" not in params:
        return None
    try:
        digest, state = json.loads(base64.urlsafe_b64decode(params["NextToken"]))
    except (ValueError, TypeError):
        digest, state = None, None
    if digest != _digest(caller, params):
        raise AwsError(code, "The NextToken is not valid for this request.")
    return state


def _digest(caller: Caller, params: dict[str, Any]) -> str:
    rest = {name: value for name, value in params.items() if name not in ("NextToken", "MaxResults", "MaxDatapoints")}
    return hashlib.sha256(json.dumps([caller.account, caller.region, rest], sort_keys=True).encode()).hexdigest()
