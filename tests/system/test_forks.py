"""What runs in a fork instead of an interpreter of its own: the libraries are there, and everything else is as before."""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from tests import forks
from tests.system.cli import COMMAND, Learner
from tests.system.exercising import environment, needs_torch
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


def run_script(folder: Path, text: str, *arguments: str) -> tuple[int, str, str]:
    """A script in a fork: its exit code, what it printed, what it complained of."""
    (folder / "script.py").write_text(text)
    words = [sys.executable, "script.py", *arguments]
    assert forks.can_start(words, environment(folder))
    fork = forks.Fork(words, folder, environment(folder), apart=True)
    out, err = fork.communicate(STUCK_S)
    return fork.returncode, out, err or ""


@needs_torch
def test_a_script_finds_torch_imported_and_all_else_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'beside'\n")
    looks = (
        "import sys\nprint('torch' in sys.modules, 'torch._dynamo' in sys.modules, 'beside' in sys.modules, __name__)\n"
        "import os, beside\nprint(beside.WORD, sys.argv, os.getcwd(), sorted(os.environ))\nprint('wrong', file=sys.stderr)\n"
    )
    code, out, err = run_script(tmp_path, looks, "--flag", "x y")
    expected = f"True True False __main__\nbeside ['script.py', '--flag', 'x y'] {tmp_path} {sorted(environment(tmp_path))}\n"
    assert (code, out, err) == (0, expected, "wrong\n")


@needs_torch
@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('no data')", 1, "no data\n"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("import threading, sys; threading.Timer(0.1, lambda: print('late', file=sys.stderr)).start()", 0, "late\n"),
    ],
)
def test_a_script_ends_as_with_an_interpreter_of_its_own(text: str, code: int, said: str, tmp_path: Path) -> None:
    ended, out, err = run_script(tmp_path, text)
    assert (ended, out) == (code, "")
    assert said in err if said else err == ""


ASKS_TWICE = """
import sys
from pathlib import Path
from tests.forks import Fork

for _ in range(2):
    fork = Fork([sys.executable, "script.py"], Path(sys.argv[1]), {}, library="gpucourse")
    print(fork.communicate(200)[0].strip(), flush=True)
    sys.stdin.readline()
"""


@pytest.mark.slow
def test_processes_of_tests_have_one_server_until_the_last_ends(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import os\nprint(os.getppid())\n")
    words, env = [sys.executable, "-c", ASKS_TWICE, str(tmp_path)], {**os.environ, forks.SHARED: str(tmp_path)}
    begins = partial(Popen[str], words, env=env, stdin=PIPE, stdout=PIPE, text=True)
    with begins() as first, begins() as second:
        assert first.stdout is not None
        assert second.stdout is not None
        server = first.stdout.readline()
        assert second.stdout.readline() == server
        assert first.communicate("\n\n")[0] == server, "it is asked again"
        assert second.communicate("\n\n")[0] == server, "the other has ended"
    until(lambda: not (tmp_path / "gpucourse").exists(), what="the end of the server")
    with begins() as third:
        assert third.communicate("\n\n")[0] not in {"", 2 * server}, "another server"


def test_what_a_library_reads_at_its_start_takes_an_interpreter(tmp_path: Path) -> None:
    env = Learner(tmp_path / "workspace").environment
    assert forks.can_start([*COMMAND, "list"], env)
    assert not forks.can_start([*COMMAND, "list"], {**env, "PYTHONPATH": os.fspath(tmp_path)})
    assert not forks.can_start([*COMMAND, "list"], {**env, "LC_ALL": "C"})
    assert not forks.can_start(["strace", *COMMAND, "list"], env)
    assert not forks.can_start([sys.executable, "-m", "torch.distributed.run", "x.py"], environment(tmp_path))
    assert not forks.can_start([sys.executable, "x.py"], {**environment(tmp_path), "OMP_NUM_THREADS": "2"})
