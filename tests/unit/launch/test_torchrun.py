"""torchrun's own options: what goes through, what gpucourse gives itself, also where a name is cut short."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from gpucourse.errors import UsageError
from gpucourse.launch.launcher import TorchrunOptions
from gpucourse.launch.torchrun import by_hand, read_options
from tests.unit.launch.test_planning import make_plan, node

LARGER_CLUSTERS = Path(__file__).parents[3] / "docs/larger-clusters.md"


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        ("", TorchrunOptions()),
        ("--max-restarts=2 --monitor-interval 0.5", TorchrunOptions(words=("--monitor-interval=0.5",), max_restarts=2)),
        ("--max_restarts 0 --role='my ranks'", TorchrunOptions(words=("--role=my ranks",), max_restarts=0)),
        ("--max-rest 3", TorchrunOptions(max_restarts=3)),
        ("--virtual-local-rank --new-option=1", TorchrunOptions(words=("--virtual-local-rank", "--new-option=1"))),
    ],
)
def test_read_options_keeps_options_of_torchrun(typed: str, options: TorchrunOptions) -> None:
    assert read_options(typed) == options


@pytest.mark.parametrize(
    ("typed", "what", "hint"),
    [
        ("--nnodes=2", "--nnodes is given by gpucourse", "--nodes 2"),
        ("--nproc_per_node 4", "--nproc_per_node is given by gpucourse", "--procs 2"),
        ("--nproc 4", "--nproc is given by gpucourse", "--procs 2"),
        ("--rdzv-backend=c10d", "--rdzv-backend is given by", "rendezvous_ports"),
        ("--rdzv-b c10d", "--rdzv-b is given by", "rendezvous_ports"),
        ("--master-port 29500", "--master-port is given by", "rendezvous_ports"),
        ("--standalone", "--standalone is given by", "where the ranks meet"),
        ("--log-dir /tmp/logs", "--log-dir is given by", "gpucourse logs --rank 1"),
        ("-t3", "-t3 is given by", "gpucourse logs --rank 1"),
        ("-m train", "-m is given by", "--script FILE"),
        ("train.py", "'train.py' is no option", "come after --"),
        ("--max-restarts", "--max-restarts needs a value", "--max-restarts=2"),
        ("--max-restarts=many", "--max-restarts=many is not a whole number from 0 to 100", "--max-restarts=2"),
        ("--max-restarts=0000000000000000200", "not a whole number from 0 to 100", "--max-restarts=2"),
        ("--max-restarts=101", "not a whole number from 0 to 100", "--max-restarts=2"),
        ("--role 'open", "No closing quotation", "--max-restarts=2"),
    ],
)
def test_read_options_refuses_what_gpucourse_sets(typed: str, what: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_options(typed)
    assert what in caught.value.what
    assert hint in caught.value.hint


def test_page_on_larger_clusters_shows_the_line_of_a_dry_run() -> None:
    plan = make_plan(node(0), node(1), arguments=("--epochs", "3"))
    shown = {"/opt/py/bin/python": ".../python", "ddp.py": "train.py", "--master-addr=10.0.0.0": "--master-addr=10.0.0.4",
             "--master-port=29501": "--master-port=29506"}  # fmt: skip
    words = [shown.get(word, word) for word in by_hand(plan.commands[0].argv)]
    page = LARGER_CLUSTERS.read_text(encoding="utf-8")
    assert f"\n{shlex.join(words)}\n" in page
    options = [word.partition("=")[0] for word in words if re.match(r"--[a-z-]+=", word)]
    elsewhere = re.findall(r"\btorchrun (--nnodes=.*?train\.py --epochs 3)", page, re.DOTALL)
    assert len(elsewhere) == 3, "in short, for Slurm and for SkyPilot"
    assert [re.findall(r"(--[a-z-]+)=", line) for line in elsewhere] == [options] * 3
