"""Limits of a response of AWS: bytes, total seconds, and for JSON (CloudWatch) nesting and number of values.

botocore reads the whole response, however long; each of its timeouts applies to one step. Its `before-send` event
allows sending and reading ourselves. Compression is neither requested nor undone, so bytes are those on the wire.

Not limited: the headers (http.client accepts 100 lines of 64 KiB, each within `read_timeout`), the nesting of XML
(EC2, STS, and Auto Scaling; expat and botocore process it without recursion), and the lookup of credentials
(instance metadata, SSO), for which botocore uses other connections.
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
    """The client of boto3 with limits. Its calls raise LimitExceeded, which no retry mode repeats."""
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
    with suppress(ValueError):  # botocore reports it
        json_of(body)
