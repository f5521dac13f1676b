"""A learner's part in a run: what the other ranks and the run see if it runs, is open, fails, ends its process or hangs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.course import FOLDERS
from tests.system.exercising import environment, needs_torch, start, wait

pytestmark = needs_torch
_SCRIPT = """
import sys
sys.path.insert(0, {shared!r})
import crew, own_part, ranks, torch, torch.distributed as dist
crew.start(2)
learner_part = own_part.Process("my_sum.py")
world = ranks.join()
tensor = torch.ones(100_000)
dist.all_reduce(tensor)
outcome = learner_part.run(world, "work:measure", limit_s={limit_s}, value=3)
dist.all_reduce(tensor)
print("outcome", outcome.state, outcome.results, outcome.text)
"""
_WORK = "def measure(world, value):\n    import my_sum\n    return my_sum.add(world, value)\n"
_IMPORTS = "import os, signal, time\nimport torch, torch.distributed as dist\n\n\ndef add(world, value):\n"


def _run_part(folder: Path, body: str, limit_s: float = 60) -> set[str]:
    """Run a part on two ranks, between two collectives of the run. Return what the ranks print about its outcome."""
    (folder / "work.py").write_text(_WORK)
    (folder / "my_sum.py").write_text(_IMPORTS + body)
    (folder / "script.py").write_text(_SCRIPT.format(shared=str(FOLDERS.exercises / "shared"), limit_s=limit_s))
    process = start([sys.executable, "script.py"], folder, environment(folder))
    printed = wait(process)
    assert process.returncode == 0, printed
    return {line.partition("outcome ")[2] for line in printed.splitlines() if "outcome " in line}


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (
            "    tensor = torch.full((3,), float(world.rank + value))\n    dist.all_reduce(tensor)\n    return tensor.tolist()",
            "ran [[7.0, 7.0, 7.0], [7.0, 7.0, 7.0]] ",
        ),
        ("    raise NotImplementedError('add: what does a rank send?')", "open [] add: what does a rank send?"),
        (
            "    if world.rank:\n        return [][value]\n    dist.recv(torch.zeros(1), src=1)",
            "failed [] rank 1: my_sum.py:7: IndexError: list index out of range",
        ),
        (
            "    if world.rank:\n        os.kill(os.getpid(), signal.SIGSEGV)\n    time.sleep(600)",
            "failed [] rank 1: my_sum.py:7: the process ended with signal 11 (SIGSEGV)",
        ),
        ("    if world.rank:\n        os._exit(3)\n    return 0", "failed [] rank 1: my_sum.py: the process ended with code 3"),
        (
            "    if world.rank:\n        return len(bytearray(8 << 30))\n    time.sleep(600)",
            "failed [] rank 1: my_sum.py:7: MemoryError: it asked for more memory than a part may have, 4 GiB",
        ),
        ("    return {torch}", "failed [] rank 0: my_sum.py: TypeError: Object of type set is not JSON serializable"),
    ],
)
def test_run_names_the_rank_and_the_line_of_a_part(tmp_path: Path, body: str, outcome: str) -> None:
    printed = _run_part(tmp_path, body)
    assert len(printed) == 1, "every rank has the same outcome"
    assert printed.pop().startswith(outcome)


def test_run_ends_a_part_that_waits_for_ever(tmp_path: Path) -> None:
    waiting = "    if world.rank:\n        dist.recv(torch.zeros(1), src=0)\n    time.sleep(600)"
    expected = "; ".join(f"rank {rank}: still at my_sum.py:{line} when it was ended" for rank, line in [(0, 8), (1, 7)])
    assert _run_part(tmp_path, waiting, limit_s=5) == {f"failed [] {expected}"}
