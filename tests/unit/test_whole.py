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
    half = whole.Half("x", "x", 1, ())
    half.ended(0, line)
    assert {word: half.counts[word] for word in counts} == counts


def run(folder: Path, busy: str, patient: str) -> tuple[int, str]:
    """Run two small suites as the two halves."""
    for name, text in (("test_busy.py", busy), ("test_patient.py", patient)):
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    root = Path(whole.__file__).parent.parent
    program = (
        "import sys; from pathlib import Path; from tests import whole\n"
        f"whole.ROOT = Path({str(folder)!r})\n"
        "whole.BUSY.chosen, whole.PATIENT.chosen = ['test_busy.py'], ['test_patient.py']\n"
        "whole.PATIENT.workers = whole.BUSY.workers = 1\n"
        "sys.exit(whole.main(['--thorough']))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout


def test_what_passes_alone_has_passed(tmp_path: Path) -> None:
    code, out = run(tmp_path, SLEEPY.format(seen=str(tmp_path / "seen")), "def test_waits(): pass\n")
    assert code == 0, out
    assert "1 of these tests failed beside others, and passed alone" in out
    assert out.splitlines()[-1].startswith("===== 3 passed in ")


def test_what_fails_twice_has_failed_in_either_half(tmp_path: Path) -> None:
    code, out = run(tmp_path, "def test_is_well(): pass\n", "def test_fails(): assert False\n")
    assert code == 1
    assert out.splitlines()[-1].startswith("===== 1 failed, 1 passed in ")
