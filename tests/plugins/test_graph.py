"""The graph of the hour: a subject waits for the apps that write the tables of its detectors."""

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
        for n in (
            "brokers",
            "confluent",
            "consumer_groups",
            "ebs_volumes",
            "jvm_apps",
            "kubernetes",
            "machines",
            "msk",
            "state_stores",
            "prices",
        )
    }
    assert graph == {
        **{step: set() for step in gathered},
        "evaluate.storage": {
            "gather.ebs_volumes",
            "gather.consumer_groups",
            "gather.kubernetes",
            "gather.msk",
            "gather.prices",
        },
        "evaluate.brokers": {
            "gather.brokers",
            "gather.confluent",
            "gather.ebs_volumes",
            "gather.consumer_groups",
            "gather.kubernetes",
            "gather.msk",
        },  # whose a broker is
        "causes": {*gathered, "evaluate.storage", "evaluate.brokers"},
        "tickets": {*gathered, "evaluate.storage", "evaluate.brokers", "causes"},
    }
    # Apps that mostly wait start before apps that compute.
    assert list(graph)[:2] == ["gather.brokers", "gather.jvm_apps"]


def test_no_step_waits_for_an_app_that_is_not_run() -> None:
    graph = hour_graph([a_detector("brokers", "metrics.broker_hourly", "metrics.volume_hourly")], ["ebs_volumes"])
    assert graph["evaluate.brokers"] == {"gather.ebs_volumes"}
    assert "gather.brokers" not in graph
