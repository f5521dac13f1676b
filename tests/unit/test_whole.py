"""The runner of many tests: groups run beside each other, nothing runs twice, and the last line counts everything once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import whole
from tests.parts import slow_after
from tests.waiting import STUCK_S


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
    group.end(0, line)
    assert {word: group.counts[word] for word in counts} == counts


WELL = "def test_is_well(): pass\n"
ONCE = """
import pathlib
def test_fails_the_first_time():
    file = pathlib.Path({file!r})
    if not file.exists():
        file.touch()
        assert False
"""
MARKED = """
import pytest
def test_of_make_test(): pass
@pytest.mark.slow
def test_of_make_slow(): pass
@pytest.mark.slow
def test_of_make_slow_too(): pass
"""


def run(folder: Path, *words: str, busy: str = WELL, waiting: str = WELL, workers: int = 1) -> tuple[int, str]:
    """Run two small suites as groups; the exit code and what was printed."""
    for name, text in (("test_busy.py", busy), ("test_waiting.py", waiting)):
        (folder / name).write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    program = (
        "import os, sys; from pathlib import Path; os.environ['WHOLE'] = str(os.getpid()); from tests import whole\n"
        f"whole.ROOT = Path({str(folder)!r})\n"
        f"group = lambda name: whole.Group(name, name, {workers}, ['test_' + name + '.py'])\n"
        "whole.groups = lambda slow: [group('busy'), group('waiting')]\n"
        f"sys.exit(whole.main({list(words)!r}))"
    )
    root = Path(whole.__file__).parent.parent
    environment = os.environ | {"PYTHONPATH": str(root)}  # pytest runs in the folder, with a plugin of the tests
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, env=environment, capture_output=True, text=True, timeout=STUCK_S, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("group", slow_after(1, "waiting", "busy"))
def test_what_fails_once_has_failed_in_any_group(group: str, tmp_path: Path) -> None:
    once = ONCE.format(file=str(tmp_path / "was here"))
    code, out = run(tmp_path, busy=once if group == "busy" else WELL, waiting=once if group == "waiting" else WELL)
    assert code == 1, out
    assert out.splitlines()[-1].startswith("===== 1 failed, 1 passed in ")


ENDS = "import os\ndef test_is_well(): pass\ndef test_ends(): os.kill(os.getpid(), 9)\ndef test_is_well_too(): pass\n"


@pytest.mark.parametrize("workers", slow_after(1, 2, 1))
def test_a_process_that_ends_in_a_test_leaves_the_rest(workers: int, tmp_path: Path) -> None:
    """A pytest without workers ends itself; with workers, one of them. The test has failed, once, and the others are run."""
    code, out = run(tmp_path, waiting=ENDS, workers=workers)
    assert code == (9 if workers == 1 else 1), out
    assert out.count("ERROR at setup of test_ends") == 1, out
    assert "ERROR test_waiting.py::test_ends - " in out[out.index("what failed among waiting") :]
    left = 1 if workers == 1 else 2  # a pytest that a signal ended had no time to count
    assert f" {1 + left} passed in " in out.splitlines()[-1]


IMPORTED = "open('imported', 'a').write('once ')\n"


def test_workers_are_forks_of_a_process_that_imported_the_tests(tmp_path: Path) -> None:
    code, out = run(tmp_path, waiting=IMPORTED + WELL, workers=2)
    assert code == 0, out
    assert (tmp_path / "imported").read_text() == "once "


HAS_A_LAB = """
import os, pathlib, signal, time, pytest
name = pathlib.Path(__file__).stem
@pytest.fixture
def lab():
    pathlib.Path(name + ".up").touch()
    yield
    time.sleep(0.1)
    pathlib.Path(name + ".up").rename(name + ".down")
def test_waits(lab):
    if name == "test_busy":
        while not pathlib.Path("test_waiting.up").exists():
            time.sleep(0.01)
        os.kill(int(os.environ["WHOLE"]), NUMBER)
    while True:
        signal.pause()
def test_never_begins():
    pathlib.Path(name + ".went on").touch()
"""


@pytest.mark.parametrize(("workers", "number"), [(2, 15), (1, 15), pytest.param(2, 2, marks=pytest.mark.slow)])
def test_a_signal_ends_all_groups_and_what_their_fixtures_put_up(workers: int, number: int, tmp_path: Path) -> None:
    text = HAS_A_LAB.replace("NUMBER", str(number))
    code, out = run(tmp_path, busy=text, waiting=text, workers=workers)
    assert code == 2, out
    assert out.splitlines()[-1].startswith("===== no tests ran in ")
    assert "crashed" not in out
    states = {path.name for path in tmp_path.iterdir() if path.suffix in {".up", ".down", ".went on"}}
    assert states == {"test_busy.down", "test_waiting.down"}


BREAKS_OFF = """
def pytest_runtest_logreport(report):
    if report.nodeid.endswith("test_is_well") and report.when == "teardown":
        raise RuntimeError("the disk is full")
"""


def test_what_an_error_of_pytest_itself_left_is_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(BREAKS_OFF)
    code, out = run(tmp_path, busy=WELL + "def test_comes_next(): pass\n", waiting="def test_other(): pass\n")
    assert code == 3, out
    assert "test_comes_next" not in out[out.index("pytest broke off") :]
    assert "INTERNALERROR> RuntimeError: the disk is full" in out[out.index("what failed among busy") :]


@pytest.mark.parametrize(
    ("words", "counted"),
    [((), "2 passed, 4 deselected"), pytest.param(("--slow",), "4 passed, 2 deselected", marks=pytest.mark.slow)],
)
def test_both_commands_together_run_every_test_once(words: tuple[str, ...], counted: str, tmp_path: Path) -> None:
    code, out = run(tmp_path, *words, busy=MARKED, waiting=MARKED.replace("test_of", "test_also_of"))
    assert code == 0, out
    assert out.splitlines()[-1].startswith(f"===== {counted} in ")


@pytest.mark.parametrize("slow", [False, True])
def test_the_groups_hold_every_test_once(slow: bool) -> None:
    """What one group leaves out, another one chooses."""
    busy, *others = whole.groups(slow=slow)
    left_out = {word.removeprefix("--ignore=") for word in busy.chosen}
    assert left_out == {path for group in others for path in group.chosen}
    assert all((whole.ROOT / path).exists() for path in left_out)


def test_nothing_is_installed_beside_tests() -> None:
    """pip removes `gpucourse` before it installs it again."""
    makefile = (
        (whole.ROOT / "Makefile")
        .read_text(encoding="utf-8")
        .replace("$(VENV)", ".venv")
        .replace("$(AWS_LINT)", ".venv/aws-lint")
    )
    before, together = (whole.ROOT / ".ci" / "run").read_text(encoding="utf-8").split("make .venv/.docs", 1)
    installed = set(re.findall(r"\.venv/\S+", before + ".venv/.docs" + together.partition("\n")[0]))
    for target in ("test", "slow", "lint", "aws-lint", "docs"):
        needs = re.search(rf"^{target}:(.*)", makefile, re.MULTILINE)
        assert needs is not None
        assert set(needs[1].split()) <= installed, target
