"""The coach on logs of scripts from public repositories: each file says where its script is from and how it was run here.

The labels were written by hand, as a good engineer would say it, from the log alone. "" is a log that shows no fault, however
it looks: nothing may be said of it. The third is the script's line that the learner is led to. quoted-* are of things that
need GPUs or Slurm's memory limits: not run, but shortened from what a public thread shows.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpucourse.coach.evidence import Evidence, Log
from gpucourse.coach.recognise import recognise
from gpucourse.model.record import NodeExit

FOLDER = Path(__file__).parents[2] / "data" / "coach" / "public"
LABELS: dict[str, tuple[str, list[int], str]] = {  # LABELS BEGIN
    "accelerate-bad-argument": ("wrong-arguments", [0], ""),
    "accelerate-checkpoint": ("wrong-arguments", [0], ""),
    "accelerate-cv-timm": ("module-missing", [0], "cv_example.py, line 21"),
    "accelerate-defaults": ("", [], ""),
    "accelerate-fp16": ("", [], ""),
    "accelerate-multi-gpu": ("", [], ""),
    "accelerate-nlp-offline": ("script-error", [0], "nlp_example.py, line 122"),
    "accelerate-no-config": ("wrong-config", [0], ""),
    "build-nanogpt-ddp": ("no-internet", [0, 1], "hellaswag.py, line 62"),
    "build-nanogpt-no-shards": ("no-internet", [0], "hellaswag.py, line 62"),
    "build-nanogpt-no-tiktoken": ("module-missing", [0], "hellaswag.py, line 31"),
    "dino-torchvision": ("module-missing", [0, 1], "main_dino.py, line 30"),
    "dist-tuto-gloo": ("", [], ""),
    "fabric-language-offline": ("no-internet", [0], "train.py, line 15"),
    "hydra-attribute": ("script-error", [0], "my_app_type_error.py, line 22"),
    "hydra-mandatory": ("wrong-config", [0], "my_app.py, line 31"),
    "hydra-no-group": ("wrong-config", [0], ""),
    "hydra-no-key": ("wrong-config", [0], ""),
    "lambda-ddp-no-gpu": ("no-gpu", [0, 1], "train_llm.py, line 37"),
    "lambda-fake-error": ("script-error", [0], "toy.py, line 36"),
    "lambda-killed": ("rank-killed", [1], ""),
    "lambda-worlds": ("never-started", [0, 1], ""),
    "lightning-autoencoder": ("module-missing", [0], "autoencoder.py, line 69"),
    "lightning-devices": ("script-error", [0], "bug_report_model.py, line 52"),
    "lightning-good": ("", [], ""),
    "lightning-gpu": ("no-gpu", [0], "bug_report_model.py, line 52"),
    "lightning-shape": ("script-error", [0], "bug_report_model.py, line 27"),
    "lightning-slurm-tasks": ("script-error", [0], "bug_report_model.py, line 52"),
    "lightning-spawn-pickle": ("script-error", [0], "bug_report_model.py, line 61"),
    "lightning-unused": ("unused-parameters", [0, 1], "bug_report_model.py, line 62"),
    "mingpt-open-files": ("open-files", [0], ""),
    "mingpt-unknown-key": ("script-error", [0], "utils.py, line 99"),
    "mingpt-worker-killed": ("worker-lost", [0], "model.py, line 27"),
    "modded-cuda": ("file-missing", [0, 1], "train_gpt.py, line 7"),
    "nanogpt-checkpoint": ("checkpoint-mismatch", [0], "train.py, line 178"),
    "nanogpt-gloo-given": ("no-gpu", [0, 1], "train.py, line 89"),
    "nanogpt-good-torchrun": ("", [], ""),
    "nanogpt-good": ("", [], ""),
    "nanogpt-heads": ("script-error", [0], "model.py, line 33"),
    "nanogpt-memory": ("out-of-memory", [0], "model.py, line 177"),
    "nanogpt-nccl": ("no-gpu", [0, 1], "train.py, line 84"),
    "nanogpt-no-checkpoint": ("file-missing", [0], "train.py, line 162"),
    "nanogpt-no-data": ("file-missing", [0], "train.py, line 120"),
    "nanogpt-small-data": ("script-error", [0], "train.py, line 123"),
    "nanogpt-unknown-key": ("script-error", [0], "train.py, line 77"),
    "pe-ddp-accelerator": ("no-gpu", [0, 1], "example.py, line 82"),
    "pe-fsdp2-two-gpus": ("", [], ""),
    "pe-mingpt-accelerator": ("no-gpu", [0, 1], "main.py, line 20"),
    "pe-mingpt-override": ("wrong-config", [0, 1], ""),
    "pe-multigpu-cuda": ("no-gpu", [0, 1], "multigpu_torchrun.py, line 14"),
    "pe-multigpu-no-arguments": ("wrong-arguments", [0, 1], ""),
    "pe-multigpu-python": ("variable-missing", [0], "multigpu_torchrun.py, line 14"),
    "pe-parameter-server": ("module-missing", [0], "rpc_parameter_server.py, line 13"),
    "pe-rpc-good": ("", [], ""),
    "pe-rpc-port": ("port-busy", [0], "main.py, line 76"),
    "pe-script-misspelt": ("file-missing", [0, 1], ""),
    "pe-tensor-parallel": ("", [], ""),
    "princeton-simple": ("variable-missing", [0, 1], "simple_dpp.py, line 20"),
    "quoted-cuda-memory": ("out-of-memory", [0], "train.py, line 140"),
    "quoted-device-assert": ("cuda-error", [0], "ppo.py, line 120"),
    "quoted-nccl-memory": ("out-of-memory", [0], ""),
    "quoted-no-interface": ("wrong-interface", [0], "gpt2_multi_task_dataset.py, line 318"),
    "quoted-rich-worker": ("worker-lost", [0], "segtrain.py, line 33"),
    "quoted-shared-memory": ("shared-memory", [0], "hrnet.py, line 50"),
    "quoted-slurm-memory": ("out-of-memory", [0], "train.py, line 1210"),
    "quoted-srun-memory": ("out-of-memory", [0], ""),
    "quoted-watchdog": ("nccl-timeout", [0, 1], ""),
    "slurm-label": ("script-error", [0], "toy.py, line 36"),
    "slurm-main-no-slurm": ("module-missing", [0], "distributed_slurm_main.py, line 20"),
    "slurm-mingpt": ("file-missing", [0], ""),
    "slurm-princeton": ("variable-missing", [0], "simple_dpp.py, line 21"),
    "slurm-pyxis": ("wrong-arguments", [0], ""),
    "slurm-srun-python": ("variable-missing", [0], "toy.py, line 17"),
    "slurm-torchrun-cuda": ("no-gpu", [0], "multinode.py, line 14"),
    "slurm-torchrun-error": ("script-error", [0], "toy.py, line 36"),
    "slurm-wrong-path": ("file-missing", [0], ""),
    "stas-allreduce-spawn": ("no-gpu", [0, 1], "all_reduce_bench.py, line 368"),
    "stas-event": ("no-gpu", [0], "num-workers-bench.py, line 35"),
    "stas-gpu-test": ("no-gpu", [0, 1], "torch-distributed-gpu-test.py, line 75"),
    "stas-main-first": ("", [], ""),
    "stas-mismatch-cuda": ("no-gpu", [0, 1], "collective_mismatch.py, line 11"),
    "stas-mismatch-gloo": ("collective-timeout", [0, 1], "collective_mismatch.py, line 15"),
    "stas-non-interleaved": ("no-gpu", [0, 1], "multi-gpu-non-interleaved-print.py, line 35"),
    "stas-pin": ("no-gpu", [0], "pin-memory-non-block-bench.py, line 42"),
    "template-experiment": ("wrong-config", [0], ""),
    "template-no-torchvision": ("wrong-config", [0], ""),
}  # LABELS END


def read_case(name: str) -> dict[str, Any]:
    case: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return case


def read_evidence(name: str) -> Evidence:
    """What the coach is given of the run: a rank that SIGTERM ended was ended after another had failed."""
    case = read_case(name)
    ends = {end["rank"]: end for end in case["rank_exits"]}
    nodes = tuple(NodeExit(**end) for end in case["node_exits"])
    codes = {node.node: node.code for node in nodes}
    logs = []
    for title, text in case["logs"].items():
        node, _, what = title.partition("-")
        rank = None if what == "launcher" else int(what.removeprefix("rank"))
        code = codes[node] if rank is None else ends[rank]["code"]
        at = None if rank is None else ends[rank]["at"]
        logs.append(Log(node=node, rank=rank, text=text, code=code, at=at, ended_by_us=rank is not None and code == 143))
    planned = {node: tuple(ranks) for node, ranks in case["planned"].items()}
    return Evidence(
        exercise="3.1", module="3", run="otter", state=case["state"], mode="local", planned=planned, logs=tuple(logs),
        node_exits=nodes, typed=case["command"], python={"node0": "/env/bin/python"},
    )  # fmt: skip


@pytest.mark.parametrize("name", LABELS)
def test_what_the_coach_says_of_it(name: str) -> None:
    symptom, ranks, where = LABELS[name]
    diagnoses = recognise(read_evidence(name))
    assert [diagnosis.symptom for diagnosis in diagnoses[:1]] == [symptom] * bool(symptom), diagnoses
    if symptom:
        assert diagnoses[0].ranks == ranks
        assert where in {quote.where for quote in diagnoses[0].seen} | {""}
        assert "{" not in diagnoses[0].title + diagnoses[0].why + diagnoses[0].next


def test_there_are_enough_logs_and_each_says_where_it_is_from() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(LABELS)
    sources = {name: read_case(name)["source"] for name in LABELS}
    assert sum("repository" in source for source in sources.values()) >= 30
    assert sum("thread" in source for source in sources.values()) <= 10
    for name, source in sources.items():
        assert source["how"]
        assert name.startswith("quoted-") == ("thread" in source)
        assert re.fullmatch(
            r"[\w.-]+/[\w.-]+@[0-9a-f]{12}|https://github\.com/\S+", source.get("repository") or source["thread"]
        )
    assert sum(not symptom for symptom, _, _ in LABELS.values()) >= 10, "logs without a fault"
    for path in FOLDER.glob("*.json"):
        assert path.stat().st_size < 24_000


def advice(name: str) -> str:
    return recognise(read_evidence(name))[0].next


def test_advice_that_was_followed_is_not_given_again() -> None:
    assert "--backend=gloo" in advice("nanogpt-nccl")
    assert "--device=cpu" not in advice("nanogpt-gloo-given"), "both were given"
    assert "torch.cuda.is_available()" in advice("nanogpt-gloo-given")
    assert "--device=cpu" in advice("pe-multigpu-cuda")


def test_a_port_that_the_script_names_itself_is_taken_again_next_time() -> None:
    busy = read_evidence("pe-rpc-port")
    assert "another port" in recognise(busy)[0].next
    own = recognise(replace(busy, typed="MASTER_PORT=23456 python main.py"))[0]
    assert own.next.startswith("the script names port 29500 itself")
    assert "another port" in recognise(replace(busy, typed="MASTER_PORT=29500 python main.py"))[0].next


def test_a_missing_module_is_installed_by_the_python_of_the_node() -> None:
    assert "/env/bin/python -m pip install" in advice("accelerate-cv-timm")
