"""The promises of every transport, tested against every kind of node: simulated nodes and a real OpenSSH server."""

from __future__ import annotations

import os
import pwd
import shlex
import signal
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gpucourse.errors import OtherHostKey, UnreachableError
from gpucourse.model.node import Node, Way
from gpucourse.parallel import try_all
from gpucourse.ports import CommandResult, Link
from gpucourse.remote.keys import ensure_client_key
from gpucourse.remote.ssh import SshTransport
from gpucourse.remote.transport import NodeTransport
from tests.openssh import openssh_nodes
from tests.sshlab import KINDS, Line, SshLab, ssh_lab
from tests.waiting import STUCK_S

pytestmark = pytest.mark.system


@pytest.fixture(scope="module", params=KINDS)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    with ssh_lab(request.param, tmp_path_factory.mktemp(request.param), 1) as lab:
        yield lab


by_every_way = pytest.mark.parametrize(
    ("lab", "way"),
    [("simulated", ""), ("openssh", ""), ("openssh", "openssh"), ("openssh", "here")],
    indirect=["lab"],
    scope="module",  # so that the tests of a lab run one after the other
)


@pytest.fixture(scope="module")
def node(lab: SshLab) -> Node:
    return lab.nodes[0]


@pytest.fixture
def link(way: Way, lab: SshLab, node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Link]:
    """Yield a link to the node, made in one of the ways."""
    if way == "openssh":
        (folder := tmp_path / ".ssh").mkdir()
        (folder / "hosts").write_text(f"[{node.address}]:{node.port} {node.host_key}\n")
        (folder / "config").write_text(f'UserKnownHostsFile "{folder}/hosts"\nIdentitiesOnly yes\n')
    if way:
        monkeypatch.setenv("HOME", str(tmp_path if way == "openssh" else lab.homes[node.name]))
    link = NodeTransport(lab.key).connect(replace(node, way=way, key=str(lab.key) if way else ""))
    yield link
    link.close()
    assert not link.alive


@pytest.fixture
def line(node: Node) -> Iterator[Line]:
    line = Line(node)
    yield line
    line.close()


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[str]:
    """Yield a command that ends with the test, because an SSH server lets a command run on after its client has gone."""
    number = tmp_path / "number"
    yield f"echo $$ >{shlex.quote(str(number))}; exec sleep 3600"
    with suppress(ProcessLookupError):
        os.kill(int(number.read_text()), signal.SIGKILL)


@by_every_way
def test_run_starts_in_the_home_of_the_node(link: Link, lab: SshLab) -> None:
    result = link.run('pwd; printf %s "$HOME"')
    home = lab.homes["node0"]
    assert result.stdout.decode().split("\n") == [str(home), str(home)]
    assert result.ok
    assert result.stderr == b""


def test_run_starts_in_the_folder_of_the_user_below_a_shared_one(lab: SshLab, node: Node, tmp_path: Path) -> None:
    shared = tmp_path / "all of us"
    shared.mkdir()
    folder = shared / f"gpucourse-{pwd.getpwuid(os.getuid()).pw_name}"
    with closing(SshTransport(lab.key).connect(node, shared=str(shared))) as link:
        for _first_or_later in range(2):
            result = link.run('pwd; printf %s "$HOME"')
            assert (result.stdout.decode().split("\n"), result.stderr) == ([str(folder), str(folder)], b"")
    assert folder.stat().st_mode & 0o777 == 0o700


def test_run_does_not_create_a_missing_shared_folder(lab: SshLab, node: Node, tmp_path: Path) -> None:
    with closing(SshTransport(lab.key).connect(node, shared=str(tmp_path / "missing"))) as link:
        result = link.run("pwd")
    assert (result.code, result.stdout) == (73, b"")
    assert b"missing" in result.stderr
    assert not (tmp_path / "missing").exists()


@by_every_way
@pytest.mark.parametrize(
    ("command", "code"), [("exit 7", 7), ("exit 255", 255), ("kill -KILL $$", 137), ("no-such-command-anywhere", 127)]
)
def test_exit_code_is_what_a_shell_returns(link: Link, command: str, code: int) -> None:
    assert link.run(command).code == code


@by_every_way
@pytest.mark.parametrize("pieces", [1, 60])
def test_outputs_are_separate_and_exact_to_the_byte(link: Link, pieces: int) -> None:
    payload = bytes(range(256)) * (300 // pieces)
    result = link.run("tee /dev/stderr", stdin=payload if pieces == 1 else iter([payload] * pieces))
    assert (result.stdout, result.stderr) == (payload * pieces, payload * pieces)


@by_every_way
def test_many_errors_do_not_block_the_output(link: Link) -> None:
    result = link.run("head -c 3000000 /dev/zero >&2; echo done; head -c 3000000 /dev/zero >&2", timeout_s=STUCK_S)
    assert result.stdout == b"done\n"
    assert 0 < len(result.stderr) <= 1 << 20  # its end
    assert set(result.stderr) == {0}


@by_every_way
def test_run_gives_up_on_a_silent_command(link: Link, endless: str) -> None:
    with pytest.raises(UnreachableError, match=r"the command sent nothing for 3 s"):
        link.run(endless, timeout_s=3)  # the same limit holds for the server's answer, which takes long on a busy computer
    assert link.run("echo alive").stdout == b"alive\n"


def test_run_raises_when_the_connection_is_cut(lab: SshLab, line: Line) -> None:
    link = SshTransport(lab.key).connect(line.node)
    line.cut_after(300_000)
    with pytest.raises(UnreachableError, match="node0"):
        link.run("head -c 3000000 /dev/zero; exit 0")
    assert not link.alive
    with pytest.raises(UnreachableError):
        link.run("true")
    link.close()


def test_run_works_on_a_server_that_allows_one_channel(tmp_path: Path) -> None:
    with (
        openssh_nodes(tmp_path / "sshd", 1, tmp_path / "key", sessions=1) as [server],
        closing(SshTransport(tmp_path / "key").connect(server.node)) as link,
    ):
        assert [link.run(f"echo {number}").stdout for number in range(5)] == [b"%d\n" % number for number in range(5)]


@by_every_way
def test_run_carries_out_eight_commands_at_a_time(link: Link) -> None:
    results = try_all([partial(link.run, f"sleep 0.2; echo {number}") for number in range(12)], limit=12)
    assert [result.stdout for result in results if isinstance(result, CommandResult)] == [
        b"%d\n" % number for number in range(12)
    ]


@by_every_way
def test_stream_arrives_while_the_command_runs(link: Link, endless: str) -> None:
    with link.stream("echo first; read x; echo $x", stdin=b"second\n") as pieces:
        assert b"".join(pieces) == b"first\nsecond\n"
    with link.stream(f"echo first; {endless}", silence_s=3600) as pieces:
        assert next(pieces) == b"first\n"
    assert link.run("echo the channel is free again").ok


@by_every_way
def test_stream_raises_when_the_command_fails(link: Link) -> None:
    with (
        pytest.raises(UnreachableError, match="code 9: no such thing"),
        link.stream("echo a; echo no such thing >&2; exit 9") as p,
    ):
        assert list(p) == [b"a\n"]


def test_connect_names_the_key_that_a_node_refuses(node: Node, tmp_path: Path) -> None:
    ensure_client_key(tmp_path / "other")
    with pytest.raises(UnreachableError, match=r"refuses the key .*other for user") as caught:
        SshTransport(tmp_path / "other").connect(node)
    assert "gpucourse deploy" in caught.value.hint


def test_connect_refuses_a_changed_host_key_before_anything_is_sent(lab: SshLab, node: Node, tmp_path: Path) -> None:
    text = " ".join(ensure_client_key(tmp_path / "k").split()[:2])
    with pytest.raises(
        OtherHostKey, match=r"a different host key \(SHA256:.*\) from the one on record \(SHA256:.*nothing was sent"
    ) as caught:
        SshTransport(lab.key).connect(replace(node, host_key=text))
    assert "gpucourse deploy" in caught.value.hint


def test_connect_accepts_any_host_key_of_a_pool_and_no_other(lab: SshLab, node: Node, tmp_path: Path) -> None:
    first, second = (" ".join(ensure_client_key(tmp_path / name).split()[:2]) for name in ("k", "l"))
    link = SshTransport(lab.key).connect(replace(node, host_key=first, other_host_keys=(second, node.host_key)))
    assert link.run("echo in").stdout == b"in\n"
    link.close()
    with pytest.raises(OtherHostKey, match=r"from the one on record \(SHA256:\S+ or SHA256:\S+\)"):
        SshTransport(lab.key).connect(replace(node, host_key=first, other_host_keys=(second,)))


def test_connect_asks_no_agent_for_keys(lab: SshLab, node: Node, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    connections: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(tmp_path / "agent"))
        agent.listen()
        agent.settimeout(0.1)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        SshTransport(lab.key).connect(node).close()
        with suppress(TimeoutError):
            connections.append(agent.accept()[0])
    assert not connections
