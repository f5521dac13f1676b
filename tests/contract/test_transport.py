"""What every transport promises, against every kind of node: our simulated ones and a real OpenSSH server."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from gpucourse.errors import MissingError, NoAnswer, OtherHostKey, UnreachableError
from gpucourse.model.node import Node
from gpucourse.remote.keys import ensure_client_key
from gpucourse.remote.sockets import RegularChecks
from gpucourse.remote.ssh import SshLink, SshTransport
from tests.sshlab import KINDS, Line, SshLab, ssh_lab
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


@pytest.fixture(scope="module", params=KINDS)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    with ssh_lab(request.param, tmp_path_factory.mktemp(request.param), 1) as lab:
        yield lab


@pytest.fixture(scope="module")
def node(lab: SshLab) -> Node:
    return lab.nodes[0]


@pytest.fixture
def link(lab: SshLab, node: Node) -> Iterator[SshLink]:
    link = SshTransport(lab.key).connect(node)
    yield link
    link.close()


@pytest.fixture
def line(node: Node) -> Iterator[Line]:
    line = Line(node)
    yield line
    line.close()


def test_runs_in_the_nodes_home(link: SshLink, lab: SshLab) -> None:
    done = link.run('pwd; printf %s "$HOME"')
    home = lab.homes["node0"]
    assert done.stdout.decode().split("\n") == [str(home), str(home)]
    assert done.ok
    assert done.stderr == b""


@pytest.mark.parametrize("code", [0, 1, 7, 126, 255])
def test_exit_code(link: SshLink, code: int) -> None:
    assert link.run(f"exit {code}").code == code


@pytest.mark.parametrize(("name", "code"), [("TERM", 143), ("KILL", 137), ("SEGV", 139)])
def test_end_by_signal_is_told_as_a_shell_tells_it(link: SshLink, name: str, code: int) -> None:
    assert link.run(f"kill -{name} $$").code == code


def test_unknown_command(link: SshLink) -> None:
    done = link.run("no-such-command-anywhere")
    assert done.code == 127
    assert b"no-such-command-anywhere" in done.stderr


@pytest.mark.parametrize(
    "text",
    ['it\'s "quoted" $HOME `id` $(id) \\n %s', "two\nlines\tand tab", "-n ünïcødé 日本", "!history #not a comment; & | <>"],
)
def test_a_command_arrives_as_it_was_written(link: SshLink, text: str) -> None:
    import shlex

    assert link.run(f"printf %s {shlex.quote(text)}").stdout.decode() == text


def test_outputs_are_apart_and_exact_to_the_byte(link: SshLink) -> None:
    every = bytes(range(256)) * 300
    done = link.run("tee /dev/stderr", stdin=every)
    assert (done.stdout, done.stderr) == (every, every)


def test_input_in_pieces_while_output_flows(link: SshLink) -> None:
    pieces = [bytes([number % 251]) * 20_001 for number in range(200)]
    done = link.run("cat", stdin=iter(pieces))
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(b"".join(pieces)).digest()


@pytest.mark.parametrize("closed_by", ["both ends", "this end, a moment ago"])
def test_a_late_word_about_a_channel_that_is_closed_costs_nothing(link: SshLink, closed_by: str) -> None:
    channel = link._transport.open_session()
    channel.exec_command("true" if closed_by == "both ends" else "cat /dev/zero")
    if closed_by == "both ends":
        channel.recv_exit_status()
        until(lambda: channel.closed, "both ends have closed the channel")
    else:
        channel.close()
    late = paramiko.Message()
    late.add_byte(paramiko.common.cMSG_CHANNEL_WINDOW_ADJUST)
    late.add_int(channel.remote_chanid)
    late.add_int(1 << 16)
    link._transport._send_user_message(late)  # type: ignore[attr-defined]  # what paramiko itself does then
    assert link.run("echo still there").stdout == b"still there\n"


def test_input_is_pulled_only_as_fast_as_the_command_reads(link: SshLink, lab: SshLab) -> None:
    pulled = 0

    def endless() -> Iterator[bytes]:
        nonlocal pulled
        while True:
            pulled += 1 << 16
            yield bytes(1 << 16)

    assert link.run("head -c 10 | wc -c; exec 0<&-; sleep 0.3", stdin=endless(), timeout_s=STUCK_S).stdout.strip() == b"10"
    assert pulled < 64 << 20


def test_a_command_that_ignores_its_input(link: SshLink) -> None:
    assert link.run("exit 3", stdin=bytes(12 << 20)).code == 3


def test_an_error_of_the_inputs_source_is_raised(link: SshLink) -> None:
    def break_off() -> Iterator[bytes]:
        yield b"some"
        raise FileNotFoundError("the file vanished")

    with pytest.raises(FileNotFoundError, match="the file vanished"):
        link.run("cat", stdin=break_off())
    assert link.run("echo still here").stdout == b"still here\n"


def test_eight_megabytes_of_errors_do_not_block_the_output(link: SshLink) -> None:
    done = link.run("head -c 8000000 /dev/zero >&2; echo done; head -c 8000000 /dev/zero >&2", timeout_s=STUCK_S)
    assert done.stdout == b"done\n"
    assert 0 < len(done.stderr) <= 1 << 20  # its end
    assert set(done.stderr) == {0}


def test_silence_ends(link: SshLink) -> None:
    with pytest.raises(UnreachableError, match=r"nothing was heard .* 0.5 s"):
        link.run("sleep 3600", timeout_s=0.5)
    assert link.run("echo alive").stdout == b"alive\n"


def test_a_frozen_peer_is_noticed(lab: SshLab, node: Node) -> None:
    link = SshTransport(lab.key).connect(node)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            link.run("echo up; sleep 3600", timeout_s=3600)
        except UnreachableError as error:
            failures.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    until(lambda: link.run("true").ok, "the link works")
    with lab.frozen(node):
        SshLink(node, link._transport, checks=RegularChecks(0.01), patience_s=0.3)  # looks after the same connection
        worker.join(STUCK_S)
        assert failures, "the frozen peer went unnoticed"
        assert not link.alive
        with pytest.raises(UnreachableError):
            link.run("true", timeout_s=3600)
    link.close()


def test_a_frozen_peer_holds_no_command_back(lab: SshLab, node: Node) -> None:
    link = SshTransport(lab.key, alive_every_s=3600).connect(node)  # the command's own deadline must do
    assert link.run("true").ok
    with lab.frozen(node), pytest.raises(UnreachableError):
        link.run("true", timeout_s=0.7)
    link.close()


def test_a_cut_connection_is_never_a_result(lab: SshLab, line: Line) -> None:
    link = SshTransport(lab.key).connect(line.node)
    line.cut_after(300_000)
    with pytest.raises(UnreachableError, match="node0"):
        link.run("head -c 3000000 /dev/zero; exit 0")
    assert not link.alive
    with pytest.raises(UnreachableError):
        link.run("true")
    link.close()


def test_what_a_child_prints_after_the_commands_end_is_not_its_output(link: SshLink) -> None:
    assert link.run("(sleep 0.5; echo late; echo late >&2) & echo done").stdout == b"done\n"


def test_closing_wakes_whoever_waits(lab: SshLab, node: Node) -> None:
    link = SshTransport(lab.key).connect(node)
    with link.stream("echo up; sleep 60") as pieces:
        assert next(pieces) == b"up\n"
        threading.Timer(0.1, link.close).start()
        with pytest.raises(UnreachableError):
            list(pieces)


def test_a_stream_arrives_while_the_command_runs(link: SshLink) -> None:
    with link.stream("echo first; read x; echo $x", stdin=b"second\n") as pieces:
        assert b"".join(pieces) == b"first\nsecond\n"
    with link.stream("echo first; sleep 3600", silence_s=3600) as pieces:
        assert next(pieces) == b"first\n"
    assert link.run("echo the channel is free again").ok


def test_a_stream_of_a_failed_command_is_an_error(link: SshLink) -> None:
    with (
        pytest.raises(UnreachableError, match="code 9: no such thing"),
        link.stream("echo a; echo no such thing >&2; exit 9") as p,
    ):
        assert list(p) == [b"a\n"]


def test_sixty_four_megabytes_each_way(link: SshLink) -> None:
    block = hashlib.sha256(b"seed").digest() * 2048
    count = (64 << 20) // len(block)
    done = link.run("cat > big; md5sum < big", stdin=(block for _ in range(count)))
    digest = hashlib.md5(block * count, usedforsecurity=False).hexdigest().encode()
    assert done.stdout[:32] == digest
    with link.stream("cat big; rm big") as pieces:
        assert hashlib.md5(b"".join(pieces), usedforsecurity=False).hexdigest().encode() == digest


@pytest.mark.parametrize(
    "command", ["yes", "yes >&2", "while sleep 0.2; do echo x; done", "while sleep 0.2; do echo x >&2; done"]
)
def test_an_answer_without_end_is_given_up(link: SshLink, command: str) -> None:
    with pytest.raises(UnreachableError):
        link.run(command, timeout_s=1.0)
    assert link.run("echo the channel is free again").ok


def test_a_hundred_and_twenty_channels_one_after_the_other(link: SshLink) -> None:
    assert [link.run(f"echo {number}").stdout for number in range(120)] == [f"{number}\n".encode() for number in range(120)]


def test_more_commands_at_once_than_the_server_allows(link: SshLink) -> None:
    answers: dict[int, bytes] = {}

    def ask(number: int) -> None:
        answers[number] = link.run(f"sleep 0.1; echo {number}").stdout

    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(STUCK_S)
    assert answers == {number: f"{number}\n".encode() for number in range(24)}


def test_another_key_is_refused(node: Node, tmp_path: Path) -> None:
    ensure_client_key(tmp_path / "other")
    with pytest.raises(UnreachableError, match=r"refuses the key .*other for user") as caught:
        SshTransport(tmp_path / "other").connect(node)
    assert "gpucourse deploy" in caught.value.hint


def test_another_user_is_refused(lab: SshLab, node: Node) -> None:
    with pytest.raises(UnreachableError, match="for user nobody-here"):
        SshTransport(lab.key).connect(replace(node, user="nobody-here"))


def test_a_missing_key_file(node: Node, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no-key"):
        SshTransport(tmp_path / "no-key").connect(node)


def test_a_changed_host_key_is_refused_before_anything_is_sent(lab: SshLab, node: Node, tmp_path: Path) -> None:
    other = " ".join(ensure_client_key(tmp_path / "k").split()[:2])
    with pytest.raises(
        OtherHostKey, match=r"another host key \(SHA256:.*\) than the one on record \(SHA256:.*nothing was sent"
    ) as caught:
        SshTransport(lab.key).connect(replace(node, host_key=other))
    assert "gpucourse deploy" in caught.value.hint


def test_any_key_of_a_pool_of_machines_is_accepted_and_no_other(lab: SshLab, node: Node, tmp_path: Path) -> None:
    first, second = (" ".join(ensure_client_key(tmp_path / name).split()[:2]) for name in ("k", "l"))
    link = SshTransport(lab.key).connect(replace(node, host_key=first, other_host_keys=(second, node.host_key)))
    assert link.run("echo in").stdout == b"in\n"
    link.close()
    with pytest.raises(OtherHostKey, match=r"than the one on record \(SHA256:\S+ or SHA256:\S+\)"):
        SshTransport(lab.key).connect(replace(node, host_key=first, other_host_keys=(second,)))


def test_a_host_key_of_another_kind_is_refused(lab: SshLab, node: Node) -> None:
    rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7"
    with pytest.raises(OtherHostKey, match="another host key"):
        SshTransport(lab.key).connect(replace(node, host_key=rsa))


def test_an_unknown_host_key_is_refused(lab: SshLab, node: Node) -> None:
    with pytest.raises(UnreachableError, match="no host key is on record"):
        SshTransport(lab.key).connect(replace(node, host_key=""))


def test_nobody_listens(lab: SshLab, node: Node) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # kept, and nobody listens there
        with pytest.raises(NoAnswer, match="connection refused"):
            SshTransport(lab.key).connect(replace(node, port=closed.getsockname()[1]))


@pytest.mark.parametrize("greeting", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-then-nothing\r\n"])
def test_somebody_else_listens(lab: SshLab, node: Node, greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def serve() -> None:
            sock, _ = server.accept()
            sock.sendall(greeting)
            held.append(sock)

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(NoAnswer, match="node0 does not answer SSH"):
            SshTransport(lab.key).connect(replace(node, port=server.getsockname()[1]), timeout_s=0.3)
        for sock in held:
            sock.close()


def test_no_agent_and_no_other_key_is_tried(lab: SshLab, node: Node, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(tmp_path / "agent"))
        agent.listen()
        agent.settimeout(0.1)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        SshTransport(lab.key).connect(node).close()
        with suppress(TimeoutError):
            asked.append(agent.accept()[0])
    assert not asked
