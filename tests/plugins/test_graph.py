"""The graph of the hour: from what detectors read to what their subject waits for."""

from __future__ import annotations

from dataclasses import replace

from streamwarden.dag_graph import hour_graph
from streamwarden.detectors import Detector, load_detectors


def a_detector(subject: str, *reads: str) -> Detector:
    return replace(load_detectors()["controllers_missing"], subject=subject, reads=reads)


def test_a_subject_waits_for_the_apps_of_all_its_detectors_and_tickets_for_everything() -> None:
    graph = hour_graph(
        [
            a_detector("storage", "metrics.volume_hourly", "inventory.ebs_price"),
            a_detector("brokers", "metrics.broker_hourly", "metrics.topic_hourly"),
            a_detector("storage", "inventory.topic_hourly", "detect.evaluation"),
        ]
    )
    gathered = {
        f"gather.{n}"
        for n in ("brokers", "consumer_groups", "ebs_volumes", "jvm_apps", "machines", "msk", "state_stores", "prices")
    }
    assert graph == {
        **{step: set() for step in gathered},
        "judge.storage": {"gather.ebs_volumes", "gather.consumer_groups", "gather.msk", "gather.prices"},
        "judge.brokers": {
            "gather.brokers",
            "gather.ebs_volumes",
            "gather.consumer_groups",
            "gather.msk",
        },  # whose it is
        "causes": {*gathered, "judge.storage", "judge.brokers"},
        "tickets": {*gathered, "judge.storage", "judge.brokers", "causes"},
    }
    # What mostly waits begins before what computes.
    assert list(graph)[:2] == ["gather.brokers", "gather.jvm_apps"]


def test_apps_that_are_left_out_are_not_waited_for() -> None:
    graph = hour_graph([a_detector("brokers", "metrics.broker_hourly", "metrics.volume_hourly")], ["ebs_volumes"])
    assert graph["judge.brokers"] == {"gather.ebs_volumes"}
    assert "gather.brokers" not in graph
