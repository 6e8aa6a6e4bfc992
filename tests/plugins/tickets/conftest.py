"""Scenarios in a new warehouse, and a real Roundup."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from streamwarden.base.config import Config, Tickets

from tests.plugins.tickets.scenario import DeliveryScenario, MemorySink
from tests.roundup import Tracker, running_tracker


@pytest.fixture
def scenario(warehouse: sa.Engine) -> DeliveryScenario:
    return DeliveryScenario(warehouse)


@pytest.fixture
def sink() -> MemorySink:
    return MemorySink()


@pytest.fixture
def config() -> Config:
    return Config(tickets=Tickets(max_new_per_run=3, reopen_within_hours=24))


@pytest.fixture(scope="session")
def tracker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tracker]:
    with running_tracker(tmp_path_factory.mktemp("tracker")) as running:
        yield running
