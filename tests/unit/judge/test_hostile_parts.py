"""Whatever a learner's part does, it gets a verdict with a name, in time, and nothing of it stays."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.judge.client import Judge, JudgeAnswer
from tests.waiting import STUCK_S, until

LIMIT_S = 1.5
JUDGE = """
from gpucourse.judge import Case, Way

WAYS = {"other-way": Way("another")}


def judge(part):
    answer = part.function("answer")
    part.compare([Case("n = 1", part.call(answer, 1), 2)])
"""
RIGHT = "def answer(n):\n    return n + 1\n"


def body(*lines: str) -> str:
    return "import os, signal, subprocess, sys, time\n\n\ndef answer(n):\n" + "".join(f"    {line}\n" for line in lines)


FATES = {
    "right": (RIGHT, "passed", "", ""),
    "with-bom-and-crlf": ("\ufeff" + RIGHT.replace("\n", "\r\n"), "passed", "", ""),
    "not-written": (body("raise NotImplementedError('how?')"), "open", "", "how?"),
    "endless": (body("while True: pass"), "failed", "endless", "my_part.py:5: it did not end within 1.5 s"),
    "ignores-sigterm": (
        body("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "time.sleep(600)"), "failed", "endless", "my_part.py:6",
    ),
    "stops-itself": (body("os.kill(os.getpid(), signal.SIGSTOP)", "return 2"), "failed", "endless", "did not end"),
    "handles-signals": (body("signal.signal(signal.SIGUSR1, signal.SIG_IGN)", "return 2"), "passed", "", ""),
    "exits": (body("sys.exit(3)"), "failed", "exit", "my_part.py:5: it ended the program (exit 3): return instead"),
    "quits-at-once": (body("os._exit(0)"), "failed", "exit", "it ended its process with code 0: return instead"),
    "crashes": (body("os.kill(os.getpid(), signal.SIGSEGV)"), "failed", "crash", "it crashed: SIGSEGV"),
    "kills-its-group": (body("os.killpg(0, signal.SIGTERM)"), "failed", "crash", "it crashed: SIGTERM"),
    "interrupts": (body("raise KeyboardInterrupt"), "failed", "error", "my_part.py:5: KeyboardInterrupt"),
    "prints-200-MB": (body("for _ in range(200): print('x' * (1 << 20))"), "failed", "too-much-output", "more than 1 MB"),
    "prints-binary": (body("os.write(1, bytes(range(256)))", "return 2"), "passed", "", ""),
    "renamed": ("def anwser(n):\n    return 2\n", "failed", "no-function", "it has anwser: keep its name"),
    "syntax": ("def answer(n)\n    return 2\n", "failed", "not-python", "my_part.py:1: expected ':'"),
    "tabs": ("def answer(n):\n\treturn 2\n        return 3\n", "failed", "not-python", "my_part.py:3: "),
    "binary": ("def answer(n):\n    return '\0'\n", "failed", "not-text", "save it again as UTF-8"),
    "empty": ("", "failed", "no-function", "has no function answer"),
    "missing-library": ("import numpie\n\n\n" + RIGHT, "failed", "no-library", "it imports numpie, which is missing"),
    "neighbour": ("import my_helper\n\n\n" + RIGHT, "failed", "no-library", "it imports my_helper"),
    "reads-stdin": (body("return int(input('n? '))"), "failed", "reads-input", "my_part.py:5: it waits for input"),
    "closes-stdout": (body("os.close(1)", "return 2"), "passed", "", ""),
    "closes-sys-stdout": (body("sys.stdout.close()", "return 2"), "passed", "", ""),
    "closes-everything": (body("os.closerange(0, 100)", "time.sleep(600)"), "failed", "closed-files", "closed files"),
    "changes-folder": (body("os.chdir('/')", "return 2"), "passed", "", ""),
    "uses-much-memory": (body("return len(bytearray(1 << 34))"), "failed", "memory", "more memory than a part may have"),
    "fills-the-disk": (body("open('f', 'wb').write(bytes(1 << 29))"), "failed", "error", "File too large"),
    "returns-nothing": (body("pass"), "failed", "no-answer", "is the return missing?"),
    "odd-error": (
        "class Odd(Exception):\n    def __str__(self): raise self\n\n\ndef answer(n):\n    raise Odd\n",
        "failed", "error", "my_part.py:6: Odd",
    ),
    "long-error": (body("raise ValueError('x' * (100 << 20))"), "failed", "error", "my_part.py:5: ValueError: xxx"),
    "strange-text": (body("raise ValueError('\\ud800 \\x1b[2J')"), "failed", "error", "ValueError"),
    "odd-value": (
        "class Odd:\n    def __str__(self): raise ValueError('no')\n\n\ndef answer(n):\n    return Odd()\n",
        "failed", "error", "my_part.py:2: ValueError: no",
    ),
    "deep": (body("return answer(n)"), "failed", "error", "RecursionError"),
    "forks-back": (body("os.fork()", "return 2"), "passed", "", ""),
    "ends-its-parent": (body("os.kill(os.getppid(), signal.SIGKILL)", "time.sleep(600)"), "failed", "ended-parent", "SIGKILL"),
    "asks-its-parent-to-end": (
        body("os.kill(os.getppid(), signal.SIGTERM)", "time.sleep(600)"), "failed", "ended-parent", "SIGTERM",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


@pytest.fixture
def judge_file(tmp_path: Path) -> Path:
    (tmp_path / "judges").mkdir()
    path = tmp_path / "judges" / "my_part.py"
    path.write_text(JUDGE)
    return path


def ask(judge: Judge, judge_file: Path, text: str, *, limit_s: float = STUCK_S) -> JudgeAnswer:
    file = judge_file.parent.parent / "my_part.py"
    file.write_bytes(text.encode("utf-8"))
    (file.parent / "my_helper.py").write_text("")
    return judge.judge(judge_file, file, torch=False, limit_s=limit_s)


def is_gone(process: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has, too."""
    deadline = time.monotonic() + STUCK_S
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):  # the second where it ends between open and read
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("fate", FATES)
def test_a_part_gets_a_named_verdict(judge: Judge, judge_file: Path, fate: str) -> None:
    text, word, way, says = FATES[fate]
    judged = ask(judge, judge_file, text, limit_s=LIMIT_S if way in {"endless", "closed-files"} else STUCK_S)
    assert (judged.word, judged.way) == (word, way), judged
    assert says in judged.says
    assert len(judged.says) <= 2000
    assert len(judged.output) <= 8 << 10


def test_a_part_finds_the_programs_of_the_system_on_a_short_path(judge_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with Judge() as judge:
        answer = ask(judge, judge_file, body("return 2 if '/usr/sbin' in os.environ['PATH'].split(':') else 0"))
    assert answer.word == "passed"


@pytest.mark.parametrize(
    "leaves",
    [
        "p = subprocess.Popen(['sleep', '600'])",
        "p = subprocess.Popen(['sleep', '600'], start_new_session=True)",
        "p = subprocess.Popen(['sh', '-c', 'setsid sleep 600 & echo $! > kid; wait'], start_new_session=True)",
    ],
    ids=["child", "session", "grandchild"],
)
def test_what_a_part_leaves_behind_is_ended(judge: Judge, judge_file: Path, leaves: str) -> None:
    note = judge_file.with_name("left")
    judged = ask(judge, judge_file, body(leaves, f"open({str(note)!r}, 'w').write(str(p.pid))", "return 2"))
    assert judged.word == "passed"
    assert is_gone(int(note.read_text()))


@pytest.mark.parametrize("fate", ["endless", "ends-its-parent", "exits"])
def test_no_folder_of_a_part_stays(judge_file: Path, fate: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with Judge() as judge:
        ask(judge, judge_file, FATES[fate][0], limit_s=LIMIT_S)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_judge_goes_on_after_a_part_that_ended_it(judge: Judge, judge_file: Path) -> None:
    ask(judge, judge_file, FATES["ends-its-parent"][0])
    assert ask(judge, judge_file, RIGHT).word == "passed"


def test_a_fault_of_the_judge_is_not_the_learners(judge: Judge, judge_file: Path) -> None:
    judge_file.write_text("WAYS = {}\n\n\ndef judge(part):\n    1 / 0\n")
    judged = ask(judge, judge_file, RIGHT)
    assert (judged.word, judged.way) == ("error", "judge")
    assert "ZeroDivisionError" in judged.output


def test_a_part_ends_with_whoever_asked(judge_file: Path) -> None:
    note, file = judge_file.with_name("pid"), judge_file.parent.parent / "my_part.py"
    file.write_text(body(f"open({str(note)!r}, 'w').write(str(os.getpid()))", "time.sleep(600)"))
    asker = os.fork()
    if asker == 0:
        try:
            Judge().judge(judge_file, file, torch=False, limit_s=60)
        finally:
            os._exit(1)
    until(lambda: note.exists() and note.read_text(), "the part runs")
    os.kill(asker, signal.SIGKILL)
    os.waitpid(asker, 0)
    assert is_gone(int(note.read_text()))
