"""Limits of a response of AWS: bytes, seconds in total, and of JSON (CloudWatch) nesting and values.

botocore reads a response whole, however long; each of its time-outs is of one step. Its `before-send` event lets us
send and read instead. It asks for no compression and undoes none, so bytes are those that arrive.

Not limited: the headers (http.client takes 100 lines of 64 KiB, each within `read_timeout`), the nesting of XML (EC2,
STS and Auto Scaling; expat and botocore walk it without recursion), and the look-up of credentials (instance metadata,
SSO), which botocore does by other connections.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from streamwarden.base.bounded_http import LIMITS, LimitExceeded, json_of
from urllib3.exceptions import ProtocolError
from urllib3.exceptions import ReadTimeoutError as NoMoreData

TOTAL_SECONDS = 60
"""For one attempt, from the first byte of the body. A full page of GetMetricData takes two."""
_PIECE = 2**16


def bounded(client: Any) -> Any:
    """The client of boto3. Its calls raise LimitExceeded, which no retry mode repeats."""
    session = client._endpoint.http_session

    def send(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        request.stream_output = True  # botocore leaves the body to us
        response = session.send(request)
        response._content = _body(request, response)
        if "json" in response.headers.get("content-type", ""):
            _check_json(response._content)
        return response

    client.meta.events.register("before-send", send)
    return client


def _body(request: AWSPreparedRequest, response: AWSResponse) -> bytes:
    body, until = bytearray(), time.monotonic() + TOTAL_SECONDS
    try:
        while piece := response.raw.read1(_PIECE):
            body += piece
            if len(body) > LIMITS.max_bytes:
                raise LimitExceeded(f"response exceeds {LIMITS.max_bytes // 2**20} MiB")
            if time.monotonic() > until:
                raise LimitExceeded(f"no complete response within {TOTAL_SECONDS} s")
    except LimitExceeded:
        response.raw.close()
        raise
    except NoMoreData as error:
        raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
    except ProtocolError as error:
        raise ConnectionClosedError(error=error, request=request, endpoint_url=request.url) from error
    response.raw.release_conn()
    return bytes(body)


def _check_json(body: bytes) -> None:
    with suppress(ValueError):  # botocore says so
        json_of(body)
