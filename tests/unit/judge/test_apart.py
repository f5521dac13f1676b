"""A part in a separate process: nothing of it remains."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gpucourse.judge.client import Judge
from tests.unit.judge.test_client import FATES, LIMIT_S, ask, body
from tests.waiting import until


def has_ended(process: int) -> bool:
    """Return whether a process has ended, even if its parent has not waited for it yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # the second if it ends between open and read
        return True


@pytest.mark.parametrize(
    "leaves",
    [
        "p = subprocess.Popen(['sleep', '600'])",
        "p = subprocess.Popen(['sh', '-c', 'setsid sleep 600 & echo $! > kid; wait'], start_new_session=True)",
    ],
    ids=["child", "grandchild"],
)
def test_judge_apart_ends_what_a_part_leaves_behind(judge: Judge, judge_file: Path, leaves: str) -> None:
    note = judge_file.with_name("left")
    answer = ask(judge, judge_file, body(leaves, f"open({str(note)!r}, 'w').write(str(p.pid))", "return 2"))
    assert answer.word == "passed"
    until(lambda: has_ended(int(note.read_text())), "the process has ended")


@pytest.mark.parametrize("fate", ["ends-its-parent", "exits", pytest.param("endless", marks=pytest.mark.slow)])
def test_judge_apart_leaves_no_folder_of_a_part(
    judge_file: Path, fate: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with Judge() as judge:
        ask(judge, judge_file, FATES[fate][0], limit_s=LIMIT_S)
    assert list((tmp_path / "temporary").iterdir()) == []


ASK = """
import sys
from pathlib import Path
from gpucourse.judge.client import Judge
Judge().judge(Path(sys.argv[1]), Path(sys.argv[2]), torch=False, limit_s=600)
"""


def test_judge_apart_ends_with_the_process_that_started_it(judge_file: Path) -> None:
    note, file = judge_file.with_name("pid"), judge_file.parent.parent / "my_part.py"
    file.write_text(body(f"open({str(note)!r}, 'w').write(str(os.getpid()))", "time.sleep(600)"))
    with subprocess.Popen([sys.executable, "-c", ASK, str(judge_file), str(file)]) as asker:
        until(lambda: note.exists() and note.read_text(), "the part runs")
        asker.kill()
    until(lambda: has_ended(int(note.read_text())), "the part has ended")
