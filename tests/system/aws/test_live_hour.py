"""The live hour against the mock account: a person agrees to it, and it runs to its end."""

from __future__ import annotations

import json
import sys

import pytest

from tests.system.aws.learner import CIDR, CloudLearner
from tests.system.aws.terminal import Terminal

pytestmark = [pytest.mark.system, pytest.mark.slow]

HOUR = (sys.executable, "-m", "benchmarks.live_hour")


def begin(learner: CloudLearner, usd: str = "3") -> Terminal:
    return Terminal(learner, "--max-usd", usd, command=HOUR)


def test_live_hour_asks_for_the_amount_runs_and_leaves_nothing(learner: CloudLearner) -> None:
    poor = begin(learner, "1")
    assert poor.ends() == 1
    assert "--max-usd 1: two labs that nobody takes down cost" in poor.screen
    error = begin(learner)
    error.shows("type 3 USD:")
    error.types("y")
    assert error.ends() == 130
    assert learner.list_resources() == []

    terminal = begin(learner)
    terminal.shows("type 3 USD:")
    terminal.types("3 USD")
    assert terminal.ends() == 0, terminal.screen
    assert learner.list_resources() == []
    evidence = json.loads((learner.workspace / "live-hour" / "evidence.json").read_text(encoding="utf-8"))
    assert (evidence["outcome"], evidence["left"]) == ("done", [])
    [on_demand] = evidence["facts"]["1"]["instances"]
    spot = evidence["facts"]["8"]
    [instance] = spot["instances"]
    assert on_demand["kept_when_it_powers_off"] == instance["kept_when_it_powers_off"] is False
    assert "not supported for spot instances" in instance["told_to_end_when_it_powers_off"]
    [request] = spot["spot_requests"]
    assert (request["type"], request["tags"]) == ("one-time", {}), "the provider tags none, which the policy has to allow for"
    assert learner.account.calls("CancelSpotInstanceRequests")
    assert (len(spot["file_systems"]), len(spot["schedules"])) == (1, 1)
    text = json.dumps(evidence)
    for secret in ("123456789012", "AKIAMOCK", CIDR.partition("/")[0], str(learner.workspace.parent / "home")):
        assert secret not in text, secret
