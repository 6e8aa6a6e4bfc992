"""Shared parts of the AWS sources: sessions by account and region, bounded retries, and one message per kind of
failure.

Accounts, roles, and external ids come from the config on the host of the task, keys from boto3's own chain
(environment, profile, instance role); none of them is an option of a source. `AWS_ENDPOINT_URL` works as in boto3.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import boto3
import botocore.session
import pyarrow as pa
from botocore.config import Config as ClientConfig
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.exceptions import (
    ConnectionError as NoConnection,
)
from botocore.loaders import Loader, create_loader
from botocore.parsers import ResponseParserError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from streamwarden.base.bounded_http import LimitExceeded
from streamwarden.base.config import AwsAccount, Config, load_config
from streamwarden.base.errors import StreamwardenError

from spark_apps.sources.aws_bounds import bounded
from spark_apps.sources.read_source import read_source

# Standard mode waits out throttling with exponential back-off up to 20 s; six attempts take about 15 s on average.
ATTEMPTS = 6
QUICK_ATTEMPTS = 2
_CLIENT = ClientConfig(
    retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
    connect_timeout=5,
    read_timeout=20,
    max_pool_connections=16,
    parameter_validation=False,  # our requests are valid, and checking 500 queries costs more than sending them
)
_BRIEFLY = ClientConfig(retries={"mode": "standard", "total_max_attempts": QUICK_ATTEMPTS})
_QUICK = _BRIEFLY.merge(ClientConfig(connect_timeout=3, read_timeout=5))
_BAD_CREDENTIALS = {
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "InvalidToken",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "OptInRequired",
    "RequestExpired",
    "RequestInTheFuture",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_UNKNOWN_TO_REGION = {"AuthFailure", "InvalidClientTokenId", "OptInRequired", "UnrecognizedClientException"}
_FORBIDDEN = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
_THROTTLED = {
    "EC2ThrottledException",
    "LimitExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "Throttling",
    "ThrottledException",
    "ThrottlingException",
    "TooManyRequestsException",
}
_SKEW_TOLERATED = timedelta(minutes=4)  # AWS tolerates five
_SERVICE_OF = {
    "GetMetricData": "cloudwatch",
    "ListMetrics": "cloudwatch",
    "DescribeScalingActivities": "autoscaling",
    "AssumeRole": "sts",
    "GetCallerIdentity": "sts",
    "ListClustersV2": "kafka",
    "DescribeClusterV2": "kafka",
    "GetBootstrapBrokers": "kafka",
    "ListNodes": "kafka",
    "GetSecretValue": "secretsmanager",
    "ListSchemas": "glue",
    "ListSchemaVersions": "glue",
    "GetSchemaVersion": "glue",
    "GetSchema": "glue",
    "GetProducts": "pricing",
}


@dataclass(frozen=True)
class Place:
    """A region of an account."""

    account: str
    region: str

    def __str__(self) -> str:
        return f"{self.account}/{self.region}"


class MalformedAnswer(Exception):
    """A response that parses but does not have the expected structure."""


class WrongAccount(Exception):
    """The credentials belong to another account; its metrics must not be stored for this one."""


Unreadable = (ResponseParserError, MalformedAnswer)
"""Raised for a response that was cut off: worth another attempt."""
Failure = (BotoCoreError, ClientError, ResponseParserError, LimitExceeded, MalformedAnswer, WrongAccount)
"""Errors of a call that a source turns into a gap."""


def places_of(config: Config) -> list[Place]:
    """Every region of every account, once."""
    return list({Place(a.account, region): None for a in config.aws for region in a.regions})


class Connection:
    """Clients of one region, with the role that the config has for its account. With `quick` they give up after few
    attempts."""

    def __init__(self, place: Place, *, quick: bool = False) -> None:
        self.place = place
        self.attempts = QUICK_ATTEMPTS if quick else ATTEMPTS
        self._settings = _CLIENT.merge(_QUICK) if quick else _CLIENT
        self._session: boto3.Session | None = None

    def client(self, service: str, *, timestamp_parser: Callable[[Any], Any] | None = None) -> Any:
        """A client. Raises the errors of `Failure` if the role cannot be assumed or the account is another one."""
        if self._session is None:
            self._session = self._open()
        if timestamp_parser:
            factory = self._session._session.get_component("response_parser_factory")
            factory.set_parser_defaults(timestamp_parser=timestamp_parser)
        return bounded(self._session.client(service, config=self._settings))

    def credentials(self) -> Any:
        """The keys of the place, for what signs by itself. Raises as `client` does, or NoCredentialsError."""
        if self._session is None:
            self._session = self._open()
        if (keys := self._session.get_credentials()) is None:
            raise NoCredentialsError
        return keys.get_frozen_credentials()

    def _open(self) -> boto3.Session:
        account = _account_named(self.place.account)
        session = _session(self.place.region)
        if account.role_arn:
            named = {"ExternalId": account.external_id} if account.external_id else {}
            answer = bounded(session.client("sts", config=self._settings)).assume_role(
                RoleArn=account.role_arn, RoleSessionName="streamwarden", **named
            )
            if not (keys := answer.get("Credentials")):
                raise MalformedAnswer("it has no Credentials")
            session = _session(
                self.place.region,
                aws_access_key_id=keys["AccessKeyId"],
                aws_secret_access_key=keys["SecretAccessKey"],
                aws_session_token=keys["SessionToken"],
            )
        found = _caller(session, self._settings)
        if found not in (None, account.account):
            raise WrongAccount(found)
        return session

    def gap(self, error: BaseException) -> str:
        """`failed: <message>` for an error in this region, without keys and tokens."""
        return f"failed: {self._sentence(error)}"

    def _sentence(self, error: BaseException) -> str:
        match error:
            case ClientError():
                return self._refusal(error)
            case NoCredentialsError() | PartialCredentialsError() | CredentialRetrievalError():
                return (
                    f"no AWS credentials for account {self.place.account} were found; set AWS_ACCESS_KEY_ID and"
                    " AWS_SECRET_ACCESS_KEY, a profile or an instance role."
                )
            case WrongAccount():
                return (
                    f"the AWS credentials are those of account {error}, not of {self.place.account}; set role_arn of"
                    " that account in the config, or use its own credentials."
                )
            case HTTPClientError() | NoConnection():  # refused, reset, time-outs
                return f"{self.place}: no response after {self.attempts} attempts: {_line(error)}"
            case _ if isinstance(error, Unreadable):
                return f"{self.place}: unreadable response: {_line(error)}"
        return f"{self.place}: {_line(error)}"

    def _refusal(self, error: ClientError) -> str:
        action = error.operation_name
        permission = f"{_SERVICE_OF.get(action, 'ec2')}:{action}"
        if _is_throttled(error):
            often = f"in each of {self.attempts} attempts"
            return f"{self.place} throttled {action} {often}; ask less often or raise its quota."
        if _code(error) in _BAD_CREDENTIALS:
            rejected = f"AWS rejects the credentials for account {self.place.account} ({_code(error)}, {action})"
            if skew := _skew(error):
                return f"{rejected}: {skew}"
            # Regions that are not enabled for the account return this code, too; a wrong key gives the same code.
            unknown = (
                f"; where {self.place.region} is not enabled for the account, enable it or leave it out of the config"
            )
            return f"{rejected}; renew them{unknown if _code(error) in _UNKNOWN_TO_REGION else ''}."
        if is_forbidden(error) and action == "AssumeRole":
            return (
                f"{self.place}: {_account_named(self.place.account).role_arn} cannot be assumed; its trust policy must"
                " name Streamwarden's role or user and the config's external_id, and that needs sts:AssumeRole."
            )
        if is_forbidden(error):
            return f"{self.place}: access denied for {permission}; grant it to Streamwarden's role or user."
        if _status(error) >= 500:
            attempts = f"each of {self.attempts} attempts ({_code(error)})"
            return f"{self.place}: AWS failed {action} in {attempts}; run the hour again."
        message = _line(error.response.get("Error", {}).get("Message", ""))
        return f"{self.place}: {action} failed: {_code(error)}: {message}"


def is_for_good(error: BaseException) -> bool:
    """Whether other calls of the same kind will fail in the same way, because of the caller rather than the call."""
    if isinstance(error, ClientError):
        return _code(error) in _BAD_CREDENTIALS or is_forbidden(error)
    return isinstance(error, WrongAccount | NoCredentialsError | PartialCredentialsError | CredentialRetrievalError)


def _code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "Unknown")


def _status(error: ClientError) -> int:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def is_forbidden(error: BaseException) -> bool:
    """Whether the credentials are valid but a permission is missing."""
    if not isinstance(error, ClientError) or _code(error) in _BAD_CREDENTIALS or _is_throttled(error):
        return False
    return _code(error) in _FORBIDDEN or _status(error) == 403


def _is_throttled(error: ClientError) -> bool:
    return _code(error) in _THROTTLED or _status(error) == 429


def _skew(error: ClientError) -> str | None:
    """Clock skew of this host by the date of the response, as a message; None where AWS tolerates it."""
    dated = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    try:
        ahead = datetime.now(UTC) - parsedate_to_datetime(dated)
    except (TypeError, ValueError):
        return None
    if abs(ahead) <= _SKEW_TOLERATED:
        return None
    side = "ahead of" if ahead > timedelta(0) else "behind"
    return f"this host's clock is {abs(ahead) / timedelta(minutes=1):.0f} min {side} AWS's; set it (NTP)."


def listed(answer: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of a response, which XML may omit if it is empty.

    botocore parses an incomplete JSON document, or XML of something else, as an empty response; neither must count
    as no rows.

    Raises:
        MalformedAnswer: the response does not come from AWS, or is incomplete.
    """
    metadata = answer.get("ResponseMetadata", {})
    # For XML, botocore takes the request id from the body.
    is_xml = metadata.get("RequestId") and "json" not in metadata.get("HTTPHeaders", {}).get("content-type", "")
    if key not in answer and not is_xml:
        raise MalformedAnswer(f"it has no {key}")
    return answer.get(key) or []


def unseen(rows: list[dict[str, Any]], key: str, seen: set[str]) -> list[dict[str, Any]]:
    """Rows of resources that no earlier page had; `seen` gets their keys.

    A resource that changes while pages are read may be on two of them, in two states.
    """
    new = [row for row in rows if row[key] not in seen]
    seen |= {row[key] for row in new if row[key]}
    return new


def caller_account(region: str) -> str:
    """Account number of the credentials as they are. Raises the errors of `Failure`, or MalformedAnswer."""
    answer = bounded(_session(region).client("sts", config=_CLIENT.merge(_QUICK))).get_caller_identity()
    if not (account := answer.get("Account")):
        raise MalformedAnswer("it has no Account")
    return str(account)


def _caller(session: boto3.Session, settings: ClientConfig) -> str | None:
    """Account number of the credentials; None if STS, which need not be reachable, does not return it."""
    try:
        return bounded(session.client("sts", config=settings.merge(_BRIEFLY))).get_caller_identity().get("Account")
    except (ClientError, *Unreadable, LimitExceeded, HTTPClientError, NoConnection) as error:
        if isinstance(error, ClientError) and _code(error) in _BAD_CREDENTIALS:
            raise
        return None


def _account_named(number: str) -> AwsAccount:
    if account := load_config().account_named(number):
        return account
    raise StreamwardenError(f"aws: account {number} is not in the config.")


def _session(region: str, **keys: str) -> boto3.Session:
    # A separate botocore session: the components of boto3's default session are shared by the whole process.
    own = botocore.session.Session()
    own.register_component("data_loader", _models())
    return boto3.Session(region_name=region, botocore_session=own, **keys)


@cache
def _models() -> Loader:
    """AWS' service descriptions, loaded once per process: each session would load EC2's again, 0.2 s of CPU."""
    return create_loader(botocore.session.Session().get_config_variable("data_path"))


def load_models() -> None:
    """Loads what clients of most sources need, for all processes that are forked from this one."""
    for service in ("ec2", "sts", "cloudwatch", "autoscaling"):
        for kind in ("service-2", "endpoint-rule-set-1"):
            _models().load_service_model(service, kind)
    for name in ("endpoints", "partitions", "_retry"):
        _models().load_data(name)


def _line(what: object) -> str:
    return " ".join(str(what).split())[:300].rstrip(".") + "."


@dataclass
class _PlacePartition(InputPartition):
    """One task's region; None keeps a frame without regions readable."""

    place: Place | None


class PlacesSource(DataSource):
    """A data source with one partition per region: a subclass defines its schema and how one region is read.

    Option `places`: JSON list of [account, region]; without it, all of the config.
    """

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reader of the data source."""
        return _PlacesReader(self, schema)

    @abstractmethod
    def read_place(self, connection: Connection) -> Iterator[list[dict[str, Any]]]:
        """Rows in chunks; columns that are left out are null. It turns its failures into gaps."""


def read_places(spark: SparkSession, source: type[PlacesSource], places: Iterable[Place], **options: str) -> DataFrame:
    """The frame of a source over these regions."""
    named = json.dumps([[place.account, place.region] for place in places])
    return read_source(spark, source({"places": named, **options}))


class _PlacesReader(DataSourceReader):
    def __init__(self, source: PlacesSource, schema: StructType) -> None:
        self.source = source
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        """One partition per region."""
        named = self.source.options.get("places")
        places = [Place(*place) for place in json.loads(named)] if named else places_of(load_config())
        return [_PlacePartition(place) for place in places] or [_PlacePartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows of the partition's region."""
        assert isinstance(partition, _PlacePartition)  # noqa: S101 Spark hands back what partitions() gave
        if partition.place is None:
            return
        place, schema = partition.place, to_arrow_schema(self.schema)
        for rows in self.source.read_place(Connection(place)):
            named = [{"account": place.account, "region": place.region, **row} for row in rows]
            yield pa.RecordBatch.from_pylist(named, schema=schema)
