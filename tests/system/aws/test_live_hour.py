"""The live hour as it is typed, against the mock account: agreed to by a person, and driven to its end. What ends it early is
in tests/unit/labs/test_live_hour.py."""

from __future__ import annotations

import json

import pytest

from tests.system.aws.learner import CIDR, CloudLearner
from tests.system.aws.terminal import Terminal

pytestmark = [pytest.mark.system, pytest.mark.slow]

WORDS = ("dev", "live", "--max-usd", "3")


def begin(learner: CloudLearner) -> Terminal:
    terminal = Terminal(learner, *WORDS)
    terminal.shows("type 3 USD:")
    return terminal


def test_live_hour_asks_for_the_amount_runs_and_leaves_nothing(learner: CloudLearner) -> None:
    assert "a person has to agree" in learner.types(*WORDS, code=2).err
    refused = begin(learner)
    refused.types("y")
    assert refused.ends() == 130
    assert learner.list_resources() == []
    assert not learner.account.calls("RunInstances")

    terminal = begin(learner)
    terminal.types("3 USD")
    assert terminal.ends() == 0, terminal.screen
    assert learner.list_resources() == []
    evidence = json.loads((learner.workspace / "live-hour" / "evidence.json").read_text(encoding="utf-8"))
    assert (evidence["outcome"], evidence["left"]) == ("done", [])
    [on_demand] = evidence["facts"]["1"]["01-aws-t4"]["instances"]
    spot = evidence["facts"]["2"]["02-aws-t4"]
    assert on_demand["when_it_powers_off"] == spot["instances"][0]["when_it_powers_off"] == "terminate"
    assert "not supported for spot instances" in spot["instances"][0]["told_to_end_when_it_powers_off"]
    [request] = spot["spot_requests"]
    assert (request["type"], request["tags"]) == ("one-time", {}), "the provider tags none, which the policy has to allow for"
    assert learner.account.calls("CancelSpotInstanceRequests")
    assert (len(spot["file_systems"]), len(spot["schedules"])) == (1, 1)
    text = json.dumps(evidence)
    for secret in ("123456789012", "AKIAMOCK", CIDR.partition("/")[0], str(learner.workspace.parent / "home")):
        assert secret not in text, secret
