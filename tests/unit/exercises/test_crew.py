"""Ranks that are forked from one process: who they are, what they print, and how they end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import STUCK_S

_SHARED = Path(__file__).parents[3] / "exercises" / "shared"
_NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
_SAY = f"import os; print(*(os.environ[name] for name in {_NAMES!r}))"


def _start(count: int, program: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    text = f"import sys; sys.path.insert(0, {str(_SHARED)!r}); import crew; crew.start({count})\n{program}"
    variables = {name: value for name, value in os.environ.items() if name not in (*_NAMES, "MASTER_ADDR", "MASTER_PORT")}
    return subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=variables | (environment or {}),
    )


def _finish(child: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    out, error = child.communicate(timeout=STUCK_S)
    return child.returncode, sorted(out.splitlines()), error


def test_start_numbers_ranks_over_all_nodes() -> None:
    assert _finish(_start(2, _SAY)) == (0, ["rank 0: 0 0 2 2", "rank 1: 1 1 2 2"], "")
    second = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "MASTER_PORT": "1"}
    assert _finish(_start(3, _SAY, second))[1] == ["rank 3: 3 0 6 3", "rank 4: 4 1 6 3", "rank 5: 5 2 6 3"]


def test_start_prefixes_no_line_that_is_empty_or_begins_with_its_rank() -> None:
    program = "import os\nn = os.environ['RANK']\nprint(f'rank {n} joined\\n\\nrank {n}: sum 3\\nrank {n}2 is none of mine')"
    rank_0 = ["rank 0 joined", "rank 0: rank 02 is none of mine", "rank 0: sum 3"]
    assert _finish(_start(2, program))[1] == ["", "", *rank_0, *(line.replace("0", "1") for line in rank_0)]


@pytest.mark.parametrize(("ending", "code"), [("os._exit(9)", 9), ("os.kill(os.getpid(), 9)", 137), ("sys.exit('no data')", 1)])
def test_start_ends_the_others_and_exits_with_the_code_of_a_rank_that_fails(ending: str, code: int) -> None:
    program = f"import os, signal, sys\nif os.environ['RANK'] == '1': {ending}\nsignal.pause()"
    assert _finish(_start(3, program))[0] == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_start_leaves_no_rank_if_it_is_killed(number: int) -> None:
    child = _start(2, "import signal; print('ready', flush=True); signal.pause()")
    assert child.stdout is not None
    for _ in range(2):
        child.stdout.readline()
    child.send_signal(number)
    code, _, _ = _finish(child)  # returns once no rank holds the pipe any more
    assert code in (128 + number, -number)


def test_start_refuses_processes_of_torchrun() -> None:
    code, _, error = _finish(_start(2, _SAY, {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}))
    assert code == 1
    assert "take --nproc-per-node=1, or --ranks-per-node=1" in error
