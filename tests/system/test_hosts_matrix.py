"""Hosts of every kind, each on a real OpenSSH server: every command works, or reports what the host printed.

A forced command replaces the login shell, so that a test needs neither an account of its own nor root.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.openssh import Server, openssh_nodes
from tests.parts import need
from tests.system.cli import Learner
from tests.system.test_hosts import SLEEPS, format_hosts, write_known_hosts, write_script

pytestmark = pytest.mark.system

LogIn = Callable[..., Server]

NOISE = r"""
unset BASH_ENV
echo "Hello $USER, you have 3 new mails"
printf '\033[1;31mMaintenance on Sunday\033[0m {"no": "newline"}'
printf '\000\001\377\376binary\n'
echo 'a banner for everybody' >&2
"""
CLAIMS = """#!/bin/sh
exec /usr/bin/python3 -c 'import sys
sys.version_info = ({}, 0)
exec(sys.argv[1])' "$2"
"""
SCRIPT = "import pathlib\npathlib.Path('note').write_text('kept')\nprint('counted', flush=True)\n"

COMMAND = '"$SSH_ORIGINAL_COMMAND"'
BASH = f'BASH_ENV="$HOME/.bashrc" exec bash -c {COMMAND}'
SH = f"exec /bin/sh -c {COMMAND}"


@pytest.fixture
def learner(tmp_path: Path) -> Learner:
    return Learner(tmp_path / "work space")


@pytest.fixture
def log_in(tmp_path: Path, learner: Learner) -> Iterator[LogIn]:
    """Start a server whose login shell is `line`, with start files by their names below the home, in a folder of that name."""
    with ExitStack() as stack:

        def start(line: str, files: dict[str, str] | None = None, folder: str = "machines") -> Server:
            key = learner.workspace / ".gpucourse/keys/id_ed25519"
            [server] = stack.enter_context(openssh_nodes(tmp_path / folder, 1, key, shell=line))
            for name, text in (files or {}).items():
                (server.home / name).parent.mkdir(parents=True, exist_ok=True)
                (server.home / name).write_text(text)
            write_known_hosts(learner, [server])
            return server

        yield start


def make_programs(folder: Path, python: str) -> str:
    """Return a login shell that finds only a few programs. If a version is given, its Python reports that version."""
    folder.mkdir()
    for name in ("head", "tail", "mkdir", "ls", "cat", "rm", "mv", "tar", "mktemp", "dirname", "wc", "ip"):
        (folder / name).symlink_to(need(name))
    if python:
        (folder / "python3").write_text(CLAIMS.format(python.replace(".", ", ")))
        (folder / "python3").chmod(0o755)
    return f"PATH={shlex.quote(str(folder))} {SH}"


def check_every_command(learner: Learner, server: Server) -> None:
    learner.types("deploy", "1", "--hosts", format_hosts([server]))
    assert learner.documents("status")["stacks"][0]["healthy"]
    assert "in" in learner.types("ssh", "1", "--", "echo in").out.splitlines()[-2:]
    learner.types("run", "--script", write_script(learner, "count.py", SCRIPT), "--launcher", "python")
    assert learner.newest_run()["state"] == "succeeded"
    assert [Path(file["path"]).name for file in learner.newest_run()["outputs"]] == ["note"]
    logs = learner.types("logs")
    assert "counted" in logs.out
    assert "Hello" not in logs.out + logs.err
    learner.types("run", "--script", write_script(learner, "sleeper.py", SLEEPS), "--launcher", "python", "--detach")
    learner.types("cancel", "latest", code=None)
    assert learner.newest_run()["state"] == "cancelled"
    assert "nothing is left" in learner.types("destroy", "1").out
    assert not (server.home / ".gpucourse").exists()


@pytest.mark.slow
def test_every_command_works_when_the_login_shell_prints_and_asks(log_in: LogIn, learner: Learner) -> None:
    check_every_command(learner, log_in(BASH, {".bashrc": "read -r -t 0.2 -p 'Your name? ' name\n" + NOISE}))


@pytest.mark.slow
def test_every_command_works_with_python_3_8(log_in: LogIn, learner: Learner, tmp_path: Path) -> None:
    check_every_command(learner, log_in(make_programs(tmp_path / "programs", "3.8")))


@pytest.mark.parametrize(
    ("account", "code", "words"),
    [
        ("nologin", 7, "it printed: This account is currently not available."),
        ("no python", 3, "has no Python 3.8 or newer among python3, python"),
        pytest.param("python 3.7", 3, "python3 is 3.7.", marks=pytest.mark.slow),
        pytest.param("echo Continue?; read answer", 7, "it printed: Continue?", marks=pytest.mark.slow),
    ],
)
def test_deploy_says_why_an_account_cannot_be_used(
    account: str, code: int, words: str, log_in: LogIn, learner: Learner, tmp_path: Path
) -> None:
    if account == "nologin":
        line = need("nologin")
    elif "python" in account:
        line = make_programs(tmp_path / "programs", "3.7" if account == "python 3.7" else "")
    else:
        line = f"{account}; {SH}"
    server = log_in(line)
    result = learner.types("deploy", "1", "--hosts", format_hosts([server]), code=code)
    assert words in " ".join(result.err.split())
    assert format_hosts([server]) in result.err
    assert "node0" not in result.err
    learner.types("destroy", "1", "--forget-unreachable", code=None)  # whatever was started there can be removed
    assert learner.documents("status")["stacks"] == []
    assert not (server.home / ".gpucourse").exists()
