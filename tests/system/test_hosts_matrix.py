"""Hosts of every kind on a real OpenSSH server, with real login shells: every verb works, or says what the host said."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.remote.keys import ensure_client_key
from tests.openssh import Account, Server, openssh_accounts
from tests.parts import lack, need
from tests.pythons import find_python
from tests.system.cli import Learner
from tests.system.test_hosts import SLEEPS, write_known_hosts, write_script

pytestmark = pytest.mark.system

LogIn = Callable[[Account], tuple[Server, list[str]]]

NOISE = r"""
echo "Hello $USER, you have 3 new mails"
printf '\033[1;31mMaintenance on Sunday\033[0m {"no": "newline"}'
printf '\000\001\377\376binary\n'
echo 'a banner for everybody' >&2
"""
HELLO = "echo Hello; sh -c 'echo banner >&2'\n"
CLAIMS = """#!/bin/sh
exec /usr/bin/python3 -c 'import sys
sys.version_info = ({}, 0)
exec(sys.argv[1])' "$2"
"""
SCRIPT = "import pathlib\npathlib.Path('note').write_text('kept')\nprint('counted', flush=True)\n"
WORKS = (
    Account(name="fish", shell="fish", rc={".config/fish/config.fish": HELLO}),
    Account(name="tcsh", shell="tcsh", rc={".tcshrc": HELLO}),
    Account(name="loud", shell="bash", rc={".bashrc": NOISE}),
    Account(name="asks", shell="bash", rc={".bashrc": "read -r -t 0.2 -p 'Your name? ' name\n" + NOISE}),
    Account(name="spaces", shell="bash", home="hôme of 日本, with spaces"),
    Account(name="handed", shell="bash", forced='/bin/sh -c "$SSH_ORIGINAL_COMMAND"'),
    Account(name="once", shell="bash", forced='/bin/sh -c "$SSH_ORIGINAL_COMMAND" 2>&1'),
    Account(name="python38", shell="bash", path="3.8"),
)
"""Where a script runs as anywhere. The path of an account is the version of its python3; where this machine has none of that
version, of what it claims to be."""
REFUSED = (
    (Account(name="nologin", shell="nologin"), 7, "it printed: This account is currently not available."),
    (Account(name="backups", shell="bash", forced="echo only backups here"), 7, "it printed: only backups here"),
    (Account(name="readonly", shell="bash", disk="ro,size=64k"), 3, "cannot be written: read-only file system"),
    (Account(name="full", shell="bash", disk="size=4k,nr_inodes=2"), 3, "no space left on the node's disk"),
    (Account(name="nopython", shell="bash", path="none"), 3, "has no Python 3.8 or newer among python3, python"),
    (Account(name="python37", shell="bash", path="3.7"), 3, "python3 is 3.7."),
    (Account(name="prompt", shell="bash", rc={".bashrc": "echo Continue?; read answer\n"}), 7, "it printed: Continue?"),
)
"""Where `deploy` ends with an exit code and these words."""


def _locate(account: Account, folder: Path) -> Account:
    """The account with the real place of its shell, and with programs of its own where it has no ordinary Python."""
    placed = replace(account, shell=need(account.shell))
    if not account.path:
        return placed
    programs = folder / account.name
    programs.mkdir(parents=True)
    for name in ("head", "tail", "mkdir", "ls", "cat", "rm", "mv", "tar", "mktemp", "dirname", "wc", "ip"):
        (programs / name).symlink_to(need(name))
    if real := find_python(account.path):
        (programs / "python3").symlink_to(real)
    elif account.path != "none":
        (programs / "python3").write_text(CLAIMS.format(account.path.replace(".", ", ")))
        (programs / "python3").chmod(0o755)
    return replace(placed, path=str(programs))


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("key") / "id_ed25519"
    ensure_client_key(file)
    return file


@pytest.fixture
def learner(tmp_path: Path) -> Learner:
    return Learner(tmp_path / "work space")


@pytest.fixture
def log_in(tmp_path: Path, key: Path, learner: Learner) -> Iterator[LogIn]:
    """Makes an account on a server of its own; the words that name it to `deploy`."""
    if shutil.which("python3", path="/usr/bin:/bin") is None:  # where a command by ssh looks
        lack("/usr/bin/python3")
    with ExitStack() as stack:

        def make(account: Account) -> tuple[Server, list[str]]:
            placed = _locate(account, tmp_path / "programs")
            server = stack.enter_context(openssh_accounts(tmp_path / "server", [placed], key))[account.name]
            write_known_hosts(learner, [server])
            return server, ["--hosts", f"{account.name}@127.0.0.1:{server.node.port}", "--key", str(key)]

        yield make


FAST = {"loud", "nologin", "nopython"}


def _mark(name: str) -> list[pytest.MarkDecorator]:
    return [] if name in FAST else [pytest.mark.slow]


@pytest.mark.parametrize("account", [pytest.param(account, id=account.name, marks=_mark(account.name)) for account in WORKS])
def test_every_command_works_with_any_account(account: Account, log_in: LogIn, learner: Learner) -> None:
    server, host = log_in(account)
    learner.types("deploy", "1", *host)
    assert learner.documents("status")["stacks"][0]["healthy"]
    assert learner.types("ssh", "1", "--", "echo in").out.endswith("in\n")
    learner.types("run", "--script", write_script(learner, "count.py", SCRIPT), "--launcher", "python")
    assert learner.newest_run()["state"] == "succeeded"
    assert [Path(file["path"]).name for file in learner.newest_run()["outputs"]] == ["note"]
    logs = learner.types("logs")
    assert "counted" in logs.out
    assert "Hello" not in logs.out + logs.err
    learner.types("run", "--script", write_script(learner, "sleeper.py", SLEEPS), "--launcher", "python", "--detach")
    learner.types("cancel", code=None)
    assert learner.newest_run()["state"] == "cancelled"
    assert "nothing is left" in learner.types("destroy", "1").out
    assert not (server.home / ".gpucourse").exists()


@pytest.mark.parametrize(
    ("account", "code", "words"),
    [pytest.param(*row, id=row[0].name, marks=_mark(row[0].name)) for row in REFUSED],
)
def test_deploy_says_why_an_account_cannot_be_used(
    account: Account, code: int, words: str, log_in: LogIn, learner: Learner
) -> None:
    server, host = log_in(account)
    refused = learner.types("deploy", "1", *host, code=code)
    assert words in " ".join(refused.err.split())
    assert f"{account.name}@127.0.0.1:{server.node.port}" in refused.err
    assert "node0" not in refused.err
    learner.types("destroy", "1", "--forget-unreachable", code=None)  # whatever was begun there can be got rid of
    assert learner.documents("status")["stacks"] == []
    assert not (server.home / ".gpucourse").exists()
