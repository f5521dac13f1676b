"""Judge: whatever a learner's part does, it gets a verdict with a name, in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.judge.client import Judge, JudgeAnswer
from tests.waiting import STUCK_S

LIMIT_S = 1.0
SLOW = {"ignores-sigterm", "stops-itself", "closes-everything"}
"""Parts that are only over after LIMIT_S, beside the endless one."""
RIGHT = "def answer(n):\n    return n + 1\n"


def body(*lines: str) -> str:
    return "import os, signal, subprocess, sys, time\n\n\ndef answer(n):\n" + "".join(f"    {line}\n" for line in lines)


FATES = {
    "right": (RIGHT, "passed", "", ""),
    "endless": (body("while True: pass"), "failed", "endless", "my_part.py:5: it did not end within"),
    "ignores-sigterm": (
        body("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "time.sleep(600)"), "failed", "endless", "my_part.py:6",
    ),
    "stops-itself": (body("os.kill(os.getpid(), signal.SIGSTOP)", "return 2"), "failed", "endless", "did not end"),
    "exits": (body("sys.exit(3)"), "failed", "exit", "my_part.py:5: it ended the program (exit 3): return instead"),
    "quits-at-once": (body("os._exit(0)"), "failed", "exit", "it ended its process with code 0: return instead"),
    "crashes": (body("os.kill(os.getpid(), signal.SIGSEGV)"), "failed", "crash", "it crashed: SIGSEGV"),
    "prints-200-MB": (body("for _ in range(200): print('x' * (1 << 20))"), "failed", "too-much-output", "more than 1 MB"),
    "reads-stdin": (body("return int(input('n? '))"), "failed", "reads-input", "my_part.py:5: it waits for input"),
    "closes-stdout": (body("os.close(1)", "return 2"), "passed", "", ""),
    "closes-everything": (body("os.closerange(0, 100)", "time.sleep(600)"), "failed", "closed-files", "closed files"),
    "uses-much-memory": (body("return len(bytearray(1 << 34))"), "failed", "memory", "more memory than a part may have"),
    "fills-the-disk": (body("open('f', 'wb').write(bytes(1 << 29))"), "failed", "error", "File too large"),
    "returns-nothing": (body("pass"), "failed", "no-answer", "is the return missing?"),
    "long-error": (body("raise ValueError('x' * (100 << 20))"), "failed", "error", "my_part.py:5: ValueError: xxx"),
    "odd-value": (
        "class Odd:\n    def __str__(self): raise ValueError('no')\n\n\ndef answer(n):\n    return Odd()\n",
        "failed", "error", "my_part.py:2: ValueError: no",
    ),
    "deep": (body("return answer(n)"), "failed", "error", "RecursionError"),
    "forks-back": (body("os.fork()", "return 2"), "passed", "", ""),
    "ends-its-parent": (body("os.kill(os.getppid(), signal.SIGKILL)", "time.sleep(600)"), "failed", "ended-parent", "SIGKILL"),
}  # fmt: skip


def ask(judge: Judge, judge_file: Path, text: str, *, limit_s: float = STUCK_S) -> JudgeAnswer:
    file = judge_file.parent.parent / "my_part.py"
    file.write_bytes(text.encode("utf-8"))
    (file.parent / "my_helper.py").write_text("")
    return judge.judge(judge_file, file, torch=False, limit_s=limit_s)


@pytest.mark.parametrize("fate", [pytest.param(fate, marks=pytest.mark.slow if fate in SLOW else ()) for fate in FATES])
def test_judge_names_the_result_of_a_part(judge: Judge, judge_file: Path, fate: str) -> None:
    text, word, way, sentence = FATES[fate]
    answer = ask(judge, judge_file, text, limit_s=LIMIT_S if way in {"endless", "closed-files"} else STUCK_S)
    assert (answer.word, answer.way) == (word, way), answer
    assert sentence in answer.says
    assert len(answer.says) <= 2000
    assert len(answer.output) <= 8 << 10


@pytest.mark.parametrize(("load", "seconds"), [(0.0, 0.1), (2.1, 0.2), (100.0, 1)])
def test_judge_gives_a_part_more_time_on_a_busy_computer(
    judge: Judge, judge_file: Path, monkeypatch: pytest.MonkeyPatch, load: float, seconds: float
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    assert f"within {seconds} s" in ask(judge, judge_file, FATES["endless"][0], limit_s=0.1).says


def test_judge_lets_a_part_use_the_programs_of_the_system(judge_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with Judge() as judge:
        answer = ask(judge, judge_file, body("return 2 if '/usr/sbin' in os.environ['PATH'].split(':') else 0"))
    assert answer.word == "passed"


def test_judge_continues_after_a_part_that_ended_its_process(judge: Judge, judge_file: Path) -> None:
    ask(judge, judge_file, FATES["ends-its-parent"][0])
    assert ask(judge, judge_file, RIGHT).word == "passed"


def test_judge_distinguishes_its_own_fault_from_the_learners(judge: Judge, judge_file: Path) -> None:
    judge_file.write_text("WAYS = {}\n\n\ndef judge(part):\n    1 / 0\n")
    answer = ask(judge, judge_file, RIGHT)
    assert (answer.word, answer.way) == ("error", "judge")
    assert "ZeroDivisionError" in answer.output
