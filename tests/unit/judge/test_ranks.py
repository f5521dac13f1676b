"""A part on several ranks: the result of each, and the lines at which they wait for each other."""

from __future__ import annotations

import math
import multiprocessing
import re
from pathlib import Path

import pytest

from gpucourse.judge.client import Judge, JudgeAnswer
from gpucourse.judge.ranks import QUIET_S, QuietSpan, _describe_wait, _gather, _pack, _RankProcess, line_of_stack
from gpucourse.judge.verdict import Verdict

JUDGE = """
import torch

from gpucourse.judge import Way

WAYS = {"other-way": Way("another")}


def judge(part):
    exchange = part.function("exchange")
    torch.ones(2, requires_grad=True).sum().backward()  # forks must be able to do this, too
    if part.on_ranks(2, lambda rank, size: rank + size) != [2, 3]:
        raise part.wrong("other-way")
    answers = part.on_ranks(3, lambda rank, size: part.call(exchange, rank, size))
    if answers != [0, 1, 2]:
        raise part.wrong("other-way")
    part.note("three ranks")
"""
HEAD = "import os\n\nimport torch\nimport torch.distributed as dist\n\n\ndef exchange(rank, size):\n"


def ask(judge: Judge, folder: Path, *lines: str) -> JudgeAnswer:
    (folder / "judges").mkdir()
    (folder / "judges" / "my_ranks.py").write_text(JUDGE)
    file = folder / "my_ranks.py"
    file.write_text(HEAD + "".join(f"    {line}\n" for line in lines))
    return judge.judge(folder / "judges" / "my_ranks.py", file, torch=True, limit_s=120)


def test_run_ranks_returns_the_results_of_right_ranks(judge: Judge, tmp_path: Path) -> None:
    lines = ("torch.ones(1, requires_grad=True).sum().backward()", "dist.barrier()", "return rank")
    answer = ask(judge, tmp_path, *lines)
    assert (answer.word, answer.notes) == ("passed", ("three ranks",)), answer


def test_run_ranks_says_where_ranks_wait_for_each_other(judge: Judge, tmp_path: Path) -> None:
    answer = ask(judge, tmp_path, "if rank == 2:", "    dist.recv(torch.zeros(1), 1)", "dist.barrier()", "return rank")
    assert (answer.word, answer.way) == ("failed", "hang"), answer
    assert "rank 0, 1 of 3 wait at my_ranks.py:10; rank 2 of 3 waits at my_ranks.py:9, and " in answer.says


@pytest.mark.parametrize(
    ("quiet", "end"),
    [(True, "and never ended: which rank waits for a message that no rank sends?"), (False, "that is very busy")],
)
def test_describe_wait_is_certain_only_of_ranks_that_are_quiet(tmp_path: Path, quiet: bool, end: str) -> None:
    assert _describe_wait([], 3, tmp_path, "my_ranks.py", quiet=quiet).endswith(end)


def test_run_ranks_names_the_rank_that_failed(judge: Judge, tmp_path: Path) -> None:
    answer = ask(judge, tmp_path, "dist.barrier()", "return [0, 1][rank]")
    assert answer.way == "error"
    assert answer.says == "rank 2 of 3: my_ranks.py:9: IndexError: list index out of range"


def test_run_ranks_names_a_rank_that_ends_its_process(judge: Judge, tmp_path: Path) -> None:
    answer = ask(judge, tmp_path, "dist.barrier()", "if rank == 1:", "    os._exit(0)", "return rank")
    assert answer.says == "rank 1 of 3 ended without an answer"


def test_gather_names_the_rank_that_failed_before_those_it_left(tmp_path: Path) -> None:
    ranks = []
    for number, sentence in enumerate(("Connection closed by peer [127.0.0.1]:1", "OSError: gone")):
        reader, writer = multiprocessing.Pipe(duplex=False)
        writer.send_bytes(_pack(("verdict", Verdict("failed", "error", sentence))))
        ranks.append(_RankProcess(number, multiprocessing.current_process(), reader))
    with pytest.raises(Verdict) as error:
        _gather(ranks, math.inf, tmp_path, "my_ranks.py")
    assert error.value.says == "rank 1 of 2: OSError: gone"


def test_run_ranks_names_a_closed_connection_without_places_in_c(judge: Judge, tmp_path: Path) -> None:
    lines = ("dist.barrier()", "if rank == 1:", "    dist.destroy_process_group()", "    return rank", "dist.barrier()")
    answer = ask(judge, tmp_path, *lines)
    assert re.search(r"my_ranks.py:12: RuntimeError: (Read error \S+: )?Connection (closed|reset) by peer", answer.says)


def test_run_ranks_names_a_value_that_cannot_be_sent(judge: Judge, tmp_path: Path) -> None:
    answer = ask(judge, tmp_path, "return lambda: rank")
    assert answer.way == "error"
    assert "it returned a value that cannot be sent back" in answer.says


def test_line_of_stack_ignores_a_judge_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "stack").write_text(
        'File "/course/judges/my_ring.py", line 263 in judge\nFile "/part/my_ring.py", line 14 in send\n', encoding="utf-8"
    )
    assert line_of_stack(tmp_path / "stack", "my_ring.py") == "my_ring.py:14"
    (tmp_path / "stack").write_text('File "/course/judges/my_ring.py", line 263 in judge\n', encoding="utf-8")
    assert line_of_stack(tmp_path / "stack", "my_ring.py") == ""


def test_quiet_span_needs_ranks_that_use_no_processor() -> None:
    def look(after_s: float, spent_s: float, *, ranks: int = 3, used_s: float = 8.0) -> bool:
        return QuietSpan(since=10.0, ranks=3, used_s=used_s).look(10.0 + after_s, ranks, spent_s)

    assert look(QUIET_S + 0.1, 8.01)
    assert not look(QUIET_S - 0.1, 8.01), "not for long yet"
    assert not look(QUIET_S + 0.1, 9.0), "they compute"
    assert not look(QUIET_S + 0.1, -1.0, used_s=-1.0), "the system does not tell"


def test_quiet_span_begins_again_after_an_answer() -> None:
    quiet = QuietSpan(since=10.0, ranks=3)
    assert not quiet.look(10.0 + QUIET_S + 0.1, 1, 0.04), "two have just answered, and the third has hardly computed yet"
    assert not quiet.look(10.0 + QUIET_S + 0.2, 1, 0.05)
    assert quiet.look(10.0 + 2 * QUIET_S + 0.3, 1, 0.05), "it goes on waiting"


@pytest.mark.slow
def test_start_process_starts_new_processes_without_forks(tmp_path: Path) -> None:
    with Judge(fresh=True) as judge:
        answer = ask(judge, tmp_path, "dist.barrier()", "return [0, 1][rank]")
    assert answer.says == "rank 2 of 3: my_ranks.py:9: IndexError: list index out of range"
