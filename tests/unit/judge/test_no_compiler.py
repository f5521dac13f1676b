"""torch imports its compiler with the first optimizer and the first DDP; a process that judges does without."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.judge.client import Judge

PART = """
import torch
from torch.nn.parallel import DistributedDataParallel


def train():
    model = DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
    before = model.module.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with model.no_sync():
        model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return (before - model.module.weight).flatten().tolist()
"""
JUDGE = """
import sys
from gpucourse.judge import Case

WAYS = {}


def judge(part):
    train = part.function("train")
    (steps, compiler), = part.on_ranks(1, lambda rank, size: (train(), "torch._dynamo.convert_frame" in sys.modules))
    part.compare([Case("the step", steps, [1.0, 1.0]), Case("the compiler was imported", compiler, False)], tolerance=1e-6)
"""


def test_leave_compiler_out_keeps_an_optimizer_and_ddp_working(tmp_path: Path) -> None:
    (tmp_path / "my_training.py").write_text(PART)
    (tmp_path / "judge_training.py").write_text(JUDGE)
    with Judge() as judge:
        verdict = judge.judge(tmp_path / "judge_training.py", tmp_path / "my_training.py", torch=True, limit_s=60)
    assert (verdict.word, verdict.says) == ("passed", "")


COMPILING_PART = """
import torch


def triple(backend):
    return torch.compile(lambda x: 3 * x, backend=backend)
"""
COMPILING_JUDGE = """
import torch
from gpucourse.judge import Case, bring_compiler_in

bring_compiler_in()
WAYS = {}


def judge(part):
    graphs = []

    def record(module, inputs):
        graphs.append(module)
        return module.forward

    result = part.call(part.function("triple"), record)(torch.ones(2))
    part.compare([Case("graphs", len(graphs), 1), Case("values", result.tolist(), [3.0, 3.0])])
"""


@pytest.mark.slow
def test_bring_compiler_in_lets_a_part_be_compiled(tmp_path: Path) -> None:
    (tmp_path / "my_triple.py").write_text(COMPILING_PART)
    (tmp_path / "judge_triple.py").write_text(COMPILING_JUDGE)
    with Judge() as judge:
        verdict = judge.judge(tmp_path / "judge_triple.py", tmp_path / "my_triple.py", torch=True, limit_s=60)
    assert (verdict.word, verdict.says) == ("passed", "")
