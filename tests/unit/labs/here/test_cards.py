"""The GPUs of this computer, as its driver and its Python list them; and what one computer cannot be."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs.here.cards import list_cards, require_gpus
from gpucourse.labs.here.deploy import propose
from gpucourse.labs.here.requirements import find_requirements
from gpucourse.labs.request import DeployRequest
from tests.unit.labs.aws.fakes import context_in


def make_program(path: Path, says: str, code: int = 0) -> Path:
    """A program that prints this, whatever it is asked."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit {code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def make_python(folder: Path, torch: str, gpus: Sequence[str]) -> str:
    """A Python whose torch sees these GPUs."""
    return str(make_program(folder / "bin" / "python", json.dumps({"torch": torch, "gpus": list(gpus)})))


def with_python(folder: Path, torch: str, gpus: Sequence[str]) -> Context:
    """A workspace whose settings name such a Python."""
    context = context_in(folder)[0]
    context.settings = context.settings.model_copy(update={"node_python": make_python(folder, torch, gpus)})
    return context


def test_list_cards_asks_the_driver(tmp_path: Path) -> None:
    make_program(tmp_path / "bin" / "nvidia-smi", "GPU 0: NVIDIA L4 (UUID: GPU-1)\nGPU 1: Tesla T4 (UUID: GPU-2)")
    assert list_cards({"PATH": str(tmp_path / "bin")}) == ("NVIDIA L4", "Tesla T4")
    make_program(tmp_path / "bin" / "nvidia-smi", "Failed to initialize NVML: Driver/library version mismatch", code=18)
    assert list_cards({"PATH": str(tmp_path / "bin")}) == ()


def test_require_gpus_names_a_card_that_torch_cannot_use(tmp_path: Path) -> None:
    make_program(tmp_path / "bin" / "nvidia-smi", "GPU 0: NVIDIA L4 (UUID: GPU-1)")
    environ = {"PATH": str(tmp_path / "bin")}
    python = make_python(tmp_path, "2.11.0+cpu", [])
    with pytest.raises(
        MissingError, match=r"NVIDIA L4 is in this computer, but .*: its torch 2\.11\.0\+cpu does not see it"
    ) as lacks:
        require_gpus(python, environ, "")
    assert f"{python} -m pip install torch" in lacks.value.hint
    with pytest.raises(MissingError, match="it has no torch"):
        require_gpus(make_python(tmp_path, "", []), environ, "")
    for python in (str(make_program(tmp_path / "bin" / "python", "Segmentation fault")), f"{sys.executable}-gone"):
        with pytest.raises(MissingError, match="could not be asked for torch"):
            require_gpus(python, {}, "")


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        (DeployRequest(module="3"), MissingError, "over 2 GPUs or more, and this computer has 1"),
        (DeployRequest(module="2"), UsageError, "module 2 is about a cluster under Slurm, and this is one computer"),
        (DeployRequest(module="1", nodes=2), UsageError, "--nodes 2: this computer is one node"),
    ],
)
def test_propose_refuses_what_one_computer_cannot_be(
    tmp_path: Path, request_: DeployRequest, error: type[Exception], words: str
) -> None:
    context = with_python(tmp_path, "2.11.0", ["NVIDIA L4"])
    with pytest.raises(error, match=words), propose(context, replace(request_, dry_run=True)):
        pass


def test_propose_takes_every_gpu(tmp_path: Path) -> None:
    context = with_python(tmp_path, "2.11.0", ["NVIDIA L4"] * 2)
    with propose(context, DeployRequest(module="3", dry_run=True)) as proposal:
        assert (len(proposal.gpus), proposal.changes) == (2, [("create", "node0")])


def test_find_requirements_says_what_torch_can_use(tmp_path: Path) -> None:
    context = with_python(tmp_path, "2.11.0", ["NVIDIA L4"] * 2)
    [gpu] = find_requirements(context, meant=True)
    assert (gpu.state, gpu.detail) == ("ok", "NVIDIA L4 (2 of them); use it: gpucourse deploy 1 --target here")
    [none] = find_requirements(with_python(tmp_path, "2.11.0", []), meant=True)
    assert (none.state, none.mend) == ("missing", "gpucourse deploy 1 --target local")
