"""Unbounded responses from real sockets: each client stops at its limit, names it, and uses little memory."""

from __future__ import annotations

import json
from contextlib import ExitStack

import httpx
import pytest
from streamwarden.base.bounded_http import BoundedClient, LimitExceeded, Limits, json_of, lines_of

from tests.rude_server import rude
from tests.spark_apps.sources.clients import CLIENTS, PATIENT_SECONDS, memory_grown, time_out_after
from tests.variations import rare_after

JSON = [name for name in CLIENTS if name not in ("prometheus", "aws")]
FEW_CLIENTS = rare_after(2, sorted(CLIENTS, key=JSON.__contains__))
BYTES = "response exceeds"
SLOWLY = ("within", "not respond")
BROKEN = ("broke off", "was closed", "not respond", "cannot be", "unreadable", "no response")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "streamwarden.tickets.sinks.http.TOTAL_SECONDS", 0
    )  # registered, so that monkeypatch restores it
    for where in ("spark_apps.sources.aws_bounds", "streamwarden.tickets.sinks.roundup"):
        monkeypatch.setattr(f"{where}.TOTAL_SECONDS", 0)
    time_out_after(PATIENT_SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("client", FEW_CLIENTS)
def test_a_response_uses_no_more_memory_than_its_limit(client: str) -> None:
    answers = ["endless", "endless in chunks", "huge"]
    if client != "aws":  # botocore asks for no compression and undoes none
        answers.append("gzip bomb")
    with ExitStack() as servers:
        errors, grown = memory_grown(client, [servers.enter_context(rude(answer)) for answer in answers])
    limit = "128 MiB" if client == "registry" else "32 MiB"
    for answer, said in zip(answers, errors, strict=True):
        assert f"{BYTES} {limit}{' after decompression' if answer == 'gzip bomb' else ''}" in said
    assert grown < (400 if client == "registry" else 130), grown  # a growing buffer is copied once


@pytest.mark.parametrize("client", FEW_CLIENTS)
@pytest.mark.parametrize("answer", rare_after(1, ["slow", "slow headers"]))
def test_a_slow_response_ends_with_its_time_out(client: str, answer: str) -> None:
    if (client, answer) == ("aws", "slow headers"):
        pytest.skip("not limited by botocore, see aws_bounds")
    time_out_after(1)
    with rude(answer) as url:  # lasts until the client ends the request
        said = CLIENTS[client](url)
    assert any(word in said for word in SLOWLY), said


@pytest.mark.parametrize("client", JSON)
def test_nesting_and_values_are_limited(client: str) -> None:
    with rude("deep") as url:
        assert "nested deeper than 64 levels" in CLIENTS[client](url)
    with rude("many") as url:
        assert f"{BYTES} 1,000,000 values" in CLIENTS[client](url)


def test_series_of_a_page_are_limited() -> None:
    with rude("many lines") as url:
        assert f"{BYTES} 1,000,000 lines" in CLIENTS["prometheus"](url)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("answer", ["too short", "half closed", "half a gzip", "gzip in gzip"])
def test_a_truncated_response_is_an_error(client: str, answer: str) -> None:
    with rude(answer) as url:
        said = CLIENTS[client](url)
    assert any(word in said for word in BROKEN), said


@pytest.mark.parametrize("cut", range(1, 40))
def test_brackets_in_strings_do_not_count_wherever_a_chunk_ends(cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamwarden.base.bounded_http._PIECE", cut)
    value = {'[[[\\"{{{,,,': ["\\", '\\"[', "é,[", {"a": [1, 2, None]}], "b\\": "]]]"}
    body = json.dumps(value).encode()
    assert json_of(body, Limits(depth=4, values=12)) == value
    for limits in (Limits(depth=3), Limits(values=9)):
        with pytest.raises(LimitExceeded):
            json_of(body, limits)


def test_a_line_over_the_limit_is_an_error() -> None:
    with pytest.raises(LimitExceeded, match="a line of more than 64 KiB"):
        lines_of("a\n" + "x" * 70_000)


def test_threads_share_a_client_and_its_connections() -> None:
    client = BoundedClient(seconds=5, transport=httpx.MockTransport(lambda request: httpx.Response(200, text="ok")))
    assert {client.request("GET", "http://a/").text for _ in range(3)} == {"ok"}
    client.close()
