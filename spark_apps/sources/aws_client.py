"""What the AWS sources share: sessions by account and region, bounded retries, one sentence for each way a call fails.

Accounts, roles and external ids come from the config where the task runs, keys from boto3's own chain (environment,
profile, instance role); none of them is ever an option of a source. `AWS_ENDPOINT_URL` works as it does for boto3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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
from botocore.parsers import ResponseParserError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from streamwarden.config import AwsAccount, Config, load_config
from streamwarden.errors import StreamwardenError

from spark_apps.sources.planned import read_source

# Standard mode rides out throttling with exponential back-off up to 20 s; six attempts take about 15 s on average.
ATTEMPTS = 6
_CLIENT = ClientConfig(
    retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
    connect_timeout=5,
    read_timeout=20,
    max_pool_connections=16,
    parameter_validation=False,  # the requests are ours, and checking 500 queries costs more than sending them
)
_BAD_CREDENTIALS = {
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "MissingAuthenticationToken",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_FORBIDDEN = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
_THROTTLED = {
    "RequestLimitExceeded",
    "RequestThrottled",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}
_SERVICE_OF = {
    "GetMetricData": "cloudwatch",
    "ListMetrics": "cloudwatch",
    "AssumeRole": "sts",
    "GetCallerIdentity": "sts",
}


@dataclass(frozen=True)
class Place:
    """A region of an account."""

    account: str
    region: str

    def __str__(self) -> str:
        return f"{self.account}/{self.region}"


class MalformedAnswer(Exception):
    """An answer that parses and yet isn't one."""


class WrongAccount(Exception):
    """The credentials belong to another account; its figures must not be filed under this one."""


Unreadable = (ResponseParserError, MalformedAnswer)
"""What an answer cut off in the middle raises: worth another attempt."""
Failure = (BotoCoreError, ClientError, ResponseParserError, MalformedAnswer, WrongAccount)
"""What a call can raise that a source turns into a gap."""


def places_of(config: Config) -> list[Place]:
    """Every region of every account, once."""
    return list({Place(a.account, region): None for a in config.aws for region in a.regions})


class Connection:
    """Clients of one place, made with the role that the config names for its account."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._session: boto3.Session | None = None

    def client(self, service: str, *, timestamp_parser: Callable[[Any], Any] | None = None) -> Any:
        """A client. Raises what `Failure` lists when the role can't be assumed or the account is another one."""
        if self._session is None:
            self._session = self._open()
        if timestamp_parser:
            factory = self._session._session.get_component("response_parser_factory")
            factory.set_parser_defaults(timestamp_parser=timestamp_parser)
        return self._session.client(service, config=_CLIENT)

    def _open(self) -> boto3.Session:
        account = _account_named(self.place.account)
        session = _session(self.place.region)
        if account.role_arn:
            named = {"ExternalId": account.external_id} if account.external_id else {}
            keys = session.client("sts", config=_CLIENT).assume_role(
                RoleArn=account.role_arn, RoleSessionName="streamwarden", **named
            )["Credentials"]
            session = _session(
                self.place.region,
                aws_access_key_id=keys["AccessKeyId"],
                aws_secret_access_key=keys["SecretAccessKey"],
                aws_session_token=keys["SessionToken"],
            )
        found = session.client("sts", config=_CLIENT).get_caller_identity().get("Account")
        if found != account.account:
            raise WrongAccount(found)
        return session

    def gap(self, error: BaseException) -> str:
        """`refused: <one plain sentence>` for an error of this place; it holds no key and no token."""
        return f"refused: {self._sentence(error)}"

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
                return f"{self.place}: no answer after {ATTEMPTS} attempts: {_line(error)}"
            case _ if isinstance(error, Unreadable):
                return f"{self.place}: the answer can't be read: {_line(error)}"
        return f"{self.place}: {_line(error)}"

    def _refusal(self, error: ClientError) -> str:
        code, action = error.response.get("Error", {}).get("Code", "Unknown"), error.operation_name
        permission = f"{_SERVICE_OF.get(action, 'ec2')}:{action}"
        if code in _FORBIDDEN:
            return f"{self.place} doesn't allow {permission}; grant it to Streamwarden's role or user."
        if code in _BAD_CREDENTIALS:
            return f"AWS rejects the credentials for account {self.place.account} ({code}, {action}); renew them."
        if code in _THROTTLED:
            return f"{self.place} throttled {action} in each of {ATTEMPTS} attempts; ask less often or raise its quota."
        return f"{self.place}: {action} failed: {code}: {_line(error.response.get('Error', {}).get('Message', ''))}"


def is_throttled(error: BaseException) -> bool:
    """Whether AWS asked to slow down: another batch may get through."""
    return isinstance(error, ClientError) and error.response.get("Error", {}).get("Code") in _THROTTLED


def listed(answer: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The list of an answer. botocore reads half a JSON document as an empty answer; that mustn't pass for no rows."""
    if key not in answer:
        raise MalformedAnswer(f"it holds no {key}")
    return answer[key]


def _account_named(number: str) -> AwsAccount:
    for account in load_config().aws:
        if account.account == number:
            return account
    raise StreamwardenError(f"aws: account {number} isn't in the config.")


def _session(region: str, **keys: str) -> boto3.Session:
    # A botocore session of its own: the components of boto3's default session are shared by the whole process.
    return boto3.Session(region_name=region, botocore_session=botocore.session.Session(), **keys)


def _line(what: object) -> str:
    return " ".join(str(what).split())[:300].rstrip(".") + "."


@dataclass
class _PlacePartition(InputPartition):
    """One task's place; None keeps a frame of no places readable."""

    place: Place | None


class PlacesSource(DataSource):
    """A data source with one partition for each place: a subclass says its schema and how one place is read."""

    def reader(self, schema: StructType) -> DataSourceReader:
        return _PlacesReader(self, schema)

    def read_place(self, connection: Connection) -> Iterator[list[dict[str, Any]]]:
        """Rows in lots; columns left out are null. It turns its failures into gaps itself."""
        raise NotImplementedError


def read_places(spark: SparkSession, source: type[PlacesSource], places: Iterable[Place], **options: str) -> DataFrame:
    """The frame of a source over places."""
    named = json.dumps([[place.account, place.region] for place in places])
    return read_source(spark, source({"places": named, **options}))


class _PlacesReader(DataSourceReader):
    def __init__(self, source: PlacesSource, schema: StructType) -> None:
        self.source = source
        self.schema = schema

    def partitions(self) -> list[InputPartition]:
        places = [Place(*place) for place in json.loads(self.source.options["places"])]
        return [_PlacePartition(place) for place in places] or [_PlacePartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _PlacePartition)  # noqa: S101 Spark hands back what partitions() gave
        if partition.place is None:
            return
        place, schema = partition.place, to_arrow_schema(self.schema)
        for rows in self.source.read_place(Connection(place)):
            named = [{"account": place.account, "region": place.region, **row} for row in rows]
            yield pa.RecordBatch.from_pylist(named, schema=schema)
