"""The coach on logs of scripts from public repositories: each file says where its script is from and how it was run here.

The labels were written by hand, as a good engineer would say it, from the log alone. The third label is the line of the script
that the coach names.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpucourse.coach.evidence import Evidence, Log
from gpucourse.coach.recognise import recognise
from gpucourse.model.record import NodeExit

FOLDER = Path(__file__).parents[2] / "data" / "coach" / "public"
LABELS: dict[str, tuple[str, list[int], str]] = {
    "accelerate-cv-timm": ("module-missing", [0], "cv_example.py, line 21"),
    "mingpt-open-files": ("open-files", [0], ""),
    "mingpt-worker-killed": ("worker-lost", [0], "model.py, line 27"),
    "nanogpt-checkpoint": ("checkpoint-mismatch", [0], "train.py, line 178"),
    "nanogpt-gloo-given": ("no-gpu", [0, 1], "train.py, line 89"),
    "nanogpt-nccl": ("no-gpu", [0, 1], "train.py, line 84"),
    "pe-rpc-port": ("port-busy", [0], "main.py, line 76"),
    "stas-mismatch-gloo": ("collective-timeout", [0, 1], "collective_mismatch.py, line 15"),
}  # fmt: skip


def read_evidence(name: str) -> Evidence:
    """Return the evidence of the run. A rank that ended by SIGTERM was ended after another rank had failed."""
    case: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    ends = {end["rank"]: end for end in case["rank_exits"]}
    nodes = tuple(NodeExit(**end) for end in case["node_exits"])
    codes = {node.node: node.code for node in nodes}
    logs = []
    for title, text in case["logs"].items():
        node, _, role = title.partition("-")
        rank = None if role == "launcher" else int(role.removeprefix("rank"))
        code = codes[node] if rank is None else ends[rank]["code"]
        at = None if rank is None else ends[rank]["at"]
        logs.append(Log(node=node, rank=rank, text=text, code=code, at=at, ended_by_us=rank is not None and code == 143))
    ranks_by_node = {node: tuple(ranks) for node, ranks in case["planned"].items()}
    return Evidence(
        exercise="3.1", module="3", run="otter", state=case["state"], mode="local", planned=ranks_by_node, logs=tuple(logs),
        node_exits=nodes, typed=case["command"], python={"node0": "/env/bin/python"},
    )  # fmt: skip


@pytest.mark.parametrize("name", LABELS)
def test_recognise_names_symptom_ranks_and_line(name: str) -> None:
    symptom, ranks, label = LABELS[name]
    diagnoses = recognise(read_evidence(name))
    assert [diagnosis.symptom for diagnosis in diagnoses[:1]] == [symptom], diagnoses
    assert diagnoses[0].ranks == ranks
    assert label in {quote.where for quote in diagnoses[0].seen} | {""}
    assert "{" not in diagnoses[0].title + diagnoses[0].why + diagnoses[0].next


def advice(name: str) -> str:
    return recognise(read_evidence(name))[0].next


def test_recognise_does_not_repeat_advice_that_was_followed() -> None:
    assert "--backend=gloo" in advice("nanogpt-nccl")
    assert "--device=cpu" not in advice("nanogpt-gloo-given"), "both were given"
    assert "torch.cuda.is_available()" in advice("nanogpt-gloo-given")


def test_recognise_of_a_busy_port_depends_on_who_chose_it() -> None:
    busy = read_evidence("pe-rpc-port")
    assert "gpucourse cancel" in recognise(busy)[0].next
    diagnosis = recognise(replace(busy, typed="MASTER_PORT=23456 python main.py"))[0]
    assert diagnosis.next.startswith("the script sets port 29500 itself")
    assert "gpucourse cancel" in recognise(replace(busy, typed="MASTER_PORT=29500 python main.py"))[0].next


def test_recognise_of_a_missing_module_names_the_python_of_the_node() -> None:
    assert "/env/bin/python -m pip install" in advice("accelerate-cv-timm")
