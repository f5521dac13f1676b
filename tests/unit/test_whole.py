"""The runner of all tests: what fails beside others is tried once more, alone, and the last line counts everything once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import whole

SLEEPY = """
import pathlib
def test_fails_once():
    seen = pathlib.Path({seen!r})
    if not seen.exists():
        seen.touch()
        assert False
def test_is_well():
    pass
"""


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("===== 3 passed in 1.00s =====", {"passed": 3}),
        (
            "== 1 failed, 20 passed, 2 skipped, 1 warning, 2 errors in 70.1s (0:01:10) ==",
            {"failed": 1, "passed": 20, "error": 2},
        ),
        ("no tests ran in 0.01s", {"passed": 0, "failed": 0}),
    ],
)
def test_a_summary_is_counted(line: str, counts: dict[str, int]) -> None:
    group = whole.Group("x", "x", 1, ())
    group.ended(0, line)
    assert {word: group.counts[word] for word in counts} == counts


WELL = "def test_is_well(): pass\n"


def run(folder: Path, *, alone: str = WELL, busy: str = WELL, patient: str = WELL) -> tuple[int, str]:
    """Run three small suites as the three groups."""
    for name, text in (("test_alone.py", alone), ("test_busy.py", busy), ("test_patient.py", patient)):
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    root = Path(whole.__file__).parent.parent
    program = (
        "import sys; from pathlib import Path; from tests import whole\n"
        f"whole.ROOT = Path({str(folder)!r})\n"
        "for group in (whole.ALONE, whole.BUSY, whole.PATIENT):\n"
        "    group.chosen = [f'test_{group.name}.py']\n"
        "whole.PATIENT.workers = whole.BUSY.workers = 1\n"
        "sys.exit(whole.main(['--slow']))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout


def test_what_passes_alone_has_passed(tmp_path: Path) -> None:
    code, out = run(tmp_path, busy=SLEEPY.format(seen=str(tmp_path / "seen")))
    assert code == 0, out
    assert "1 of these tests failed at first, and passed alone" in out
    assert out.splitlines()[-1].startswith("===== 4 passed in ")


@pytest.mark.parametrize("group", ["alone", "busy", "patient"])
def test_what_fails_twice_has_failed_in_any_group(group: str, tmp_path: Path) -> None:
    code, out = run(tmp_path, **{group: "def test_fails(): assert False\n"})
    assert code == 1, out
    assert out.splitlines()[-1].startswith("===== 1 failed, 2 passed in ")
