from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpucourse.local import health, layout, processes
from gpucourse.workspace.lock import take
from tests.waiting import STUCK_S, until


@contextmanager
def saying(line: bytes) -> Iterator[int]:
    """Yield a port that sends `line` to each client, and nothing more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sockets: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connection.sendall(line)
                sockets.append(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        thread.join(STUCK_S)
        for connection in sockets:
            connection.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder whose host is alive."""
    lock = take(tmp_path / layout.LOCK)
    assert lock is not None
    layout.write_json(tmp_path / layout.HOST, {"uid": "s-1", "pid": 1})
    yield tmp_path
    os.close(lock)


def describe(folder: Path, name: str, port: int) -> None:
    layout.home(folder, name).mkdir(parents=True, exist_ok=True)
    layout.write_json(layout.description(folder, name), {"port": port})


def reason(folder: Path) -> str:
    (node,) = health.inspect(folder, ["node0"])
    assert node.node == "node0"
    assert node.healthy is (node.detail == "")
    return node.detail


def hello(uid: str = "s-1", name: str = "node0") -> bytes:
    return f"SSH-2.0-{health.banner(uid, name)}\r\n".encode()


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (hello(), ""),
        (b"HTTP/1.1 400\r\n", "something else answers on port {}"),
        (hello(uid="s-2"), "something else answers on port {}"),
        (hello(name="node1"), "something else answers on port {}"),
        (b"", "port {} is open but silent"),
    ],
)
def test_inspect_names_what_answers_on_the_port(folder: Path, line: bytes, detail: str) -> None:
    with saying(line) as port:
        describe(folder, "node0", port)
        assert reason(folder) == detail.format(port)


def test_inspect_names_a_port_without_a_server(folder: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # kept, and nobody listens there
        port = silent.getsockname()[1]
        describe(folder, "node0", port)
        assert reason(folder) == f"nothing answers on port {port}"


def test_inspect_names_a_missing_home(folder: Path) -> None:
    with saying(hello()) as port:
        describe(folder, "node0", port)
        layout.home(folder, "node0").rmdir()
        assert "home" in reason(folder)


@pytest.mark.parametrize("content", ["", "{", '{"port": "22"}', "[]"])
def test_inspect_names_a_damaged_description(folder: Path, content: str) -> None:
    assert "missing or damaged" in reason(folder)
    layout.description(folder, "node0").write_text(content)
    assert "missing or damaged" in reason(folder)


def test_inspect_names_a_missing_host_and_folder(tmp_path: Path) -> None:
    assert "has ended" in reason(tmp_path)
    assert list(tmp_path.iterdir()) == [], "looking leaves no trace"
    assert "is gone" in reason(tmp_path / "absent")


def test_find_leftovers_lists_what_is_there(folder: Path) -> None:
    with saying(hello()) as port, saying(b"220 mail\r\n") as mail_port:
        leftovers = health.find_leftovers(folder, "s-1", [port, mail_port])
    assert [(leftover.kind, leftover.id) for leftover in leftovers] == [
        ("port", f"127.0.0.1:{port}"),
        ("file", str(folder / layout.HOST)),
        ("file", str(folder / layout.LOCK)),
    ]
    assert all(leftover.remove for leftover in leftovers)


def test_end_everything_ends_a_driver_that_outlived_its_terraform(tmp_path: Path) -> None:
    """Take down a lab whose driver is still running. A new host ends every process with the stack's mark."""
    stack = Path(__file__).parents[3] / "terraform" / "stacks" / "simulated" / "main.tf"
    assert f"{processes.DRIVER} = var.uid" in stack.read_text(encoding="utf-8")
    uid = f"test-{tmp_path.name}-{os.getpid()}"
    process = subprocess.Popen(["/bin/sh", "-c", "kill -STOP $$; exec sleep 600"], env={**os.environ, processes.DRIVER: uid})
    try:
        until(lambda: [leftover.remove for leftover in health.find_leftovers(tmp_path, uid, [])] == [f"kill -9 {process.pid}"])
        health.end_everything(tmp_path, uid)
        assert process.wait(STUCK_S) < 0
        assert health.find_leftovers(tmp_path, uid, []) == []
    finally:
        process.kill()
        process.wait()
