"""A learner writes a part: `try` judges it alone, a run judges it at its end, and `check` again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.runs.finish import seal
from gpucourse.runs.parts import MAX_PART_BYTES, keep_started_files, read_part_results
from gpucourse.workspace import deployments, runs
from tests.learning import FOLDER, MANIFEST, Learning, deploy
from tests.waiting import STUCK_S

YOURS = """\
    yours:
      - {id: double, title: Twice, file: my_double.py, write: "Write the body of double.", torch: false}
      - {id: dry, title: Dry, file: my_dry.py, write: "Dry it.", judge: false, checks: [wet]}
"""
STUB = '"""Doubles."""\n\n\ndef double(n):\n    raise NotImplementedError("double: what is n + n?")\n'
JUDGE = """
from gpucourse.judge import Case, Way

WAYS = {"same": Way("you gave {given} back as it was", ("2 *", "1 *"))}


def judge(part):
    double = part.function("double")
    part.compare([Case(f"n = {n}", part.call(double, n), 2 * n, {"same": n}) for n in (3, 4)])
    part.note("two numbers")
"""
RIGHT, SAME = STUB.replace("raise NotImplementedError", "return 2 * n  # "), "def double(n):\n    return n\n"


def put_parts(learning: Learning) -> None:
    """Add two parts to exercise 1.2: one with a judge, one that a check judges."""
    learning.put(f"modules/{FOLDER}/module.yaml", MANIFEST + YOURS)
    learning.put(f"exercises/{FOLDER}/my_double.py", STUB)
    learning.put(f"exercises/{FOLDER}/my_dry.py", "DRY = None\n")
    learning.put(f"exercises/{FOLDER}/judges/my_double.py", JUDGE)


@pytest.fixture
def writer(learning: Learning) -> Learning:
    put_parts(learning)
    return learning


def own(learning: Learning, name: str = "my_double.py") -> Path:
    return learning.workspace / "exercises" / FOLDER / name


def write(learning: Learning, text: str, name: str = "my_double.py") -> None:
    own(learning, name).parent.mkdir(parents=True, exist_ok=True)
    own(learning, name).write_text(text)


def states(learning: Learning) -> list[str]:
    context = learning.open_context()
    return [part.verdict for part in read_part_results(context, context.catalog.exercise("1.2")[1])]


def test_try_of_a_deleted_part_restores_it(writer: Learning) -> None:
    writer.types("try", "1.2")
    own(writer).unlink()
    assert "open" in writer.types("try", "1.2").out
    assert own(writer).read_text() == STUB


@pytest.mark.parametrize("kind", ["folder", "large", "link"])
def test_try_of_anything_but_a_plain_file_says_so(writer: Learning, kind: str, tmp_path: Path) -> None:
    writer.put(f"modules/{FOLDER}/module.yaml", MANIFEST + YOURS.replace("torch: false", "torch: true"))
    writer.types("try", "1.2")
    own(writer).unlink()
    if kind == "folder":
        own(writer).mkdir()
    elif kind == "large":
        own(writer).write_bytes(b"#" * (MAX_PART_BYTES + 1))
    else:
        own(writer).symlink_to(tmp_path / "nowhere")
    result = writer.types("try", "1.2", code=0 if kind == "link" else 5)
    words = {"folder": "is not a file", "large": "but a part may have at most 64.0 KiB", "link": "Twice: open"}
    assert words[kind] in " ".join(result.out.split()), "whatever the length of the path before it, at which a line breaks"


def run_with(learning: Learning, text: str, dry: str = "DRY = None\n", **metrics: object) -> tuple[int, list[str], str]:
    """Return the result of a run that started with these parts: the exit code of `check`, the parts, and the screen."""
    write(learning, text)
    write(learning, dry, "my_dry.py")
    context = learning.open_context()
    record = learning.record("1.2", {"schema": 1, "device": "a CPU", "cuda": None, "wet": True, **metrics})
    keep_started_files(context, context.catalog.exercise("1.2")[1], record)
    seal(runs.files_of(context.paths, record), record.mode)
    result = learning.types("check", "1.2", "--json", code=None)
    screen = learning.types("check", "1.2", code=None)
    return result.code, [part["verdict"] for part in result.document["verdict"]["parts"]], screen.out


def test_try_parts_as_delivered_leaves_them_open_and_their_run_passes(writer: Learning) -> None:
    code, parts, screen = run_with(writer, STUB)
    assert (code, parts) == (0, ["open", "open"])
    assert "your part  my_double.py and my_dry.py are open" in screen
    assert screen.strip().splitlines()[-1] == "Next: gpucourse try 1.2"
    write(writer, RIGHT)
    words = "my_double.py was open in this run; it has changed since; a new run will judge it"
    assert f"your part  {words}" in writer.types("check", "1.2").out
    assert words.partition("; ")[2] in writer.types("show", "1.2", "--run", "latest", "--verbose").out


def test_try_makes_next_stay_in_its_exercise(writer: Learning) -> None:
    writer.put(f"modules/{FOLDER}/module.yaml", MANIFEST + YOURS.partition("      - {id: dry")[0])
    writer.record("1.1")
    for text in (STUB, SAME):
        write(writer, text)
        for command in ("try", "hint"):
            assert "Next: gpucourse try 1.2" in writer.types(command, "1.2", code=None).out
    for text, words in (
        (STUB, "your part is my_double.py (gpucourse edit 1.2 opens it). "),
        (f"{SAME}#\n", "has changed since it was judged"),
    ):
        write(writer, text)
        assert words in writer.types("next", "--json").document["what"]
    write(writer, RIGHT)
    for command in ("deploy 1", "run 1.2"):
        assert f"Next: gpucourse {command}" in writer.types("try", "1.2").out
        assert writer.types("next", "--json").document["command"] == f"gpucourse {command}"
        lab = deploy(writer)
        lab.created = "2098-01-01T00:00:00+00:00"  # after the `try`, for its exercise
        deployments.save(writer.context.paths, lab)
        assert writer.types("next", "--json").document["command"] == "gpucourse run 1.2"
    writer.record("1.1", created="2099-01-01T00:00:00.000+00:00")
    assert writer.types("next", "--json").document["command"] == "gpucourse answer 1.1"


def test_try_of_a_wrong_part_whose_run_is_damaged_makes_next_name_a_hint(writer: Learning) -> None:
    deploy(writer)
    run_with(writer, SAME)
    paths = writer.context.paths
    damaged_run = runs.every(paths, "1.2")[-1]
    writer.record("1.2")
    runs.files_of(paths, damaged_run).record.write_text("{")
    assert writer.types("next", "--json").document["command"] == "gpucourse hint 1.2"


def test_try_parts_in_a_run_of_a_copy_has_the_part_in_the_copy(writer: Learning, tmp_path: Path) -> None:
    write(writer, SAME)
    context = writer.open_context()
    copies = tmp_path / "broken"
    copies.mkdir()
    (copies / "my_double.py").write_text(STUB, encoding="utf-8")
    record = writer.record("1.2", {"schema": 1, "device": "a CPU", "cuda": None, "wet": False})
    keep_started_files(context, context.catalog.exercise("1.2")[1], record, copies)
    seal(runs.files_of(context.paths, record), record.mode)
    verdict = writer.types("check", "1.2", "--json", code=0).document["verdict"]
    assert {part["file"]: part["verdict"] for part in verdict["parts"]}["my_double.py"] == "open", "it ran the course's own"


def test_try_parts_keeps_checks_open_until_the_part_is_written(writer: Learning) -> None:
    assert run_with(writer, STUB, wet=False)[:2] == (0, ["open", "open"])
    code, parts, _ = run_with(writer, STUB, "DRY = True\n", wet=False)
    assert (code, parts) == (5, ["open", "failed"])
    assert run_with(writer, STUB, "DRY = True\n", wet=True)[:2] == (0, ["open", "passed"])


def test_try_parts_counts_a_batch_file_only_if_it_was_submitted(writer: Learning) -> None:
    writer.put(f"modules/{FOLDER}/module.yaml", MANIFEST + YOURS.replace("checks: [wet]", "checks: [wet], submit: true"))
    assert run_with(writer, STUB, "DRY = True\n", wet=False)[:2] == (0, ["open", "open"])


def test_try_parts_that_a_changed_judge_refuses_lose_their_mark(writer: Learning) -> None:
    write(writer, RIGHT)
    writer.types("try", "1.2")
    writer.record("1.2")
    writer.put(f"exercises/{FOLDER}/judges/my_double.py", JUDGE.replace("2 * n", "3 * n"))
    writer.types("check", "1.2", code=None)
    assert states(writer) == ["failed", "open"]


def test_try_watch_judges_a_part_on_each_save_without_a_lab(writer: Learning) -> None:
    write(writer, STUB)
    process = subprocess.Popen(
        [sys.executable, "-m", "gpucourse", "watch", "1.2"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "watching 4 files of 1.2" in line:
                write(writer, SAME)
            elif "Twice: wrong (same)" in line:
                write(writer, RIGHT)
            elif "Twice: right" in line:
                break
        process.send_signal(signal.SIGINT)
        remainder, _ = process.communicate(timeout=STUCK_S)
    finally:
        process.kill()
        process.wait()
    assert "no longer watching" in remainder
    assert process.returncode == 0
    assert states(writer) == ["passed", "open"]
