"""torchrun's own options: which are passed on, and which gpucourse sets itself, even if the name is abbreviated."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from gpucourse.errors import UsageError
from gpucourse.launch.launcher import TorchrunOptions
from gpucourse.launch.torchrun import format_typed, read_options
from tests.unit.launch.test_planning import make_plan, node

LARGER_CLUSTERS = Path(__file__).parents[3] / "docs/larger-clusters.md"


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("", TorchrunOptions()),
        ("--max-restarts=2 --monitor-interval 0.5", TorchrunOptions(words=("--monitor-interval=0.5",), max_restarts=2)),
        ("--max_restarts 0 --role='my ranks'", TorchrunOptions(words=("--role=my ranks",), max_restarts=0)),
        ("--max-rest 3", TorchrunOptions(max_restarts=3)),
        ("--virtual-local-rank --new-option=1", TorchrunOptions(words=("--virtual-local-rank", "--new-option=1"))),
    ],
)
def test_read_options_keeps_options_of_torchrun(words: str, options: TorchrunOptions) -> None:
    assert read_options(words) == options


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("--nnodes=2", "gpucourse sets --nnodes itself", "--nodes 2"),
        ("--nproc_per_node 4", "gpucourse sets --nproc_per_node itself", "--procs 2"),
        ("--rdzv-backend=c10d", "gpucourse sets --rdzv-backend itself", "rendezvous_ports"),
        ("--rdzv-b c10d", "gpucourse sets --rdzv-b itself", "rendezvous_ports"),
        ("--log-dir /tmp/logs", "gpucourse sets --log-dir itself", "gpucourse logs --rank 1"),
        ("-t3", "gpucourse sets -t3 itself", "gpucourse logs --rank 1"),
        ("-m train", "gpucourse sets -m itself", "--script FILE"),
        ("train.py", "'train.py' is not an option", "come after --"),
        ("--max-restarts", "--max-restarts needs a value", "--max-restarts=2"),
        ("--max-restarts=many", "--max-restarts=many is not a whole number from 0 to 100", "--max-restarts=2"),
        ("--role 'open", "No closing quotation", "--max-restarts=2"),
    ],
)
def test_read_options_refuses_what_gpucourse_sets(words: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_options(words)
    assert message in caught.value.what
    assert hint in caught.value.hint


def test_format_typed_is_the_line_on_the_page_about_larger_clusters() -> None:
    plan = make_plan(node(0), node(1), arguments=("--epochs", "3"))
    aliases = {"/opt/py/bin/python": ".../python", "ddp.py": "train.py", "--master-addr=10.0.0.0": "--master-addr=10.0.0.4",
             "--master-port=29501": "--master-port=29506"}  # fmt: skip
    words = [aliases.get(word, word) for word in format_typed(plan.commands[0].argv)]
    page = LARGER_CLUSTERS.read_text(encoding="utf-8")
    assert f"\n{shlex.join(words)}\n" in page
    options = [word.partition("=")[0] for word in words if re.match(r"--[a-z-]+=", word)]
    elsewhere = re.findall(r"\btorchrun (--nnodes=.*?train\.py --epochs 3)", page, re.DOTALL)
    assert len(elsewhere) == 3, "in short, for Slurm and for SkyPilot"
    assert [re.findall(r"(--[a-z-]+)=", line) for line in elsewhere] == [options] * 3


def test_start_gives_torchrun_these_lines_word_for_word() -> None:
    plan = make_plan(node(0), node(1), arguments=("--batch-size", "32"))
    assert [" ".join(command.argv) for command in plan.commands] == [
        "/opt/py/bin/python -m torch.distributed.run --nnodes=2 --nproc-per-node=1 --node-rank=0 --master-addr=10.0.0.0 "
        "--master-port=29501 --no-python {rank} /opt/py/bin/python -u ddp.py --batch-size 32",
        "/opt/py/bin/python -m torch.distributed.run --nnodes=2 --nproc-per-node=1 --node-rank=1 --master-addr=10.0.0.0 "
        "--master-port=29501 --no-python {rank} /opt/py/bin/python -u ddp.py --batch-size 32",
    ]
    assert [command.ranks for command in plan.commands] == [(0,), (1,)]
    assert " ".join(format_typed(plan.commands[0].argv)).endswith("--no-python /opt/py/bin/python -u ddp.py --batch-size 32")
    assert format_typed(("{rank}", "python", "x.py", "{rank}")) == ("python", "x.py", "{rank}")


def test_start_has_typed_options_in_every_line() -> None:
    plan = make_plan(node(0), node(1), torchrun="--max-restarts 2 --monitor-interval=0.5")
    assert plan.max_restarts == 2
    for command in plan.commands:
        assert "--max-restarts=2 --monitor-interval=0.5 --no-python" in " ".join(command.argv)


@pytest.mark.parametrize(
    ("restarts", "options", "count"), [(2, {}, 2), ("again", {"again": 3}, 3), ("again", {}, 0), (0, {}, 0)]
)
def test_start_says_how_often_it_may_start_again(restarts: object, options: dict[str, object], count: int) -> None:
    launching = {"kind": "torchrun", "nodes": 2, "restarts": restarts}
    plan = make_plan(node(0), node(1), launch=launching, parameters_chosen=options)
    flags = [[word for word in command.argv if "restarts" in word] for command in plan.commands]
    assert flags == [[f"--max-restarts={count}"] * bool(count)] * 2
    assert plan.max_restarts == count
    assert all(command.argv.index("{rank}") > 8 for command in plan.commands)
