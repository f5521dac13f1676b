"""What a driver makes of a host's answers, with a host that says what the test tells it to."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpucourse.local import control, driver, layout, processes
from gpucourse.local.hosted import Spec
from gpucourse.workspace.lock import take
from tests.waiting import STUCK_S


@contextmanager
def host(folder: Path, answers: dict[str, list[str | None]]) -> Iterator[list[str]]:
    """A socket in the folder that gives the next answer for each verb; None: no answer until the asker gives up."""
    heard: list[str] = []
    silent: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(control.SOCKET)
        server.listen()

        def serve() -> None:
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                with line.makefile() as reader:
                    verb = reader.readline().split(" ")[0]
                heard.append(verb)
                answer = answers[verb].pop(0)
                if answer is None:
                    silent.append(line)
                    continue
                with line:
                    line.sendall(answer.encode())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield heard
        server.shutdown(socket.SHUT_RDWR)
        thread.join(STUCK_S)
    for line in silent:
        line.close()
    (folder / control.SOCKET).unlink()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_answer_has_a_word_and_a_rest(folder: Path) -> None:
    with host(folder, {"add": ['node {"port": 1}\n', "ending\n"]}) as heard:
        assert control.ask("add", "{}", timeout_s=5) == ("node", '{"port": 1}')
        assert control.ask("add", "{}", timeout_s=5) == ("ending", "")
    assert heard == ["add", "add"]


def test_nobody_there_or_hung_up(folder: Path) -> None:
    with pytest.raises(control.NobodyAnswers):
        control.ask("ping", "{}", timeout_s=5)
    with host(folder, {"ping": ["", "he"]}):
        for _ in range(2):
            with pytest.raises(control.NobodyAnswers, match="hung up"):
                control.ask("ping", "{}", timeout_s=5)


def test_refused_and_stuck(folder: Path) -> None:
    with host(folder, {"add": ["error no room\n", None]}):
        with pytest.raises(control.ControlRefused, match="no room"):
            control.ask("add", "{}", timeout_s=5)
        with pytest.raises(control.HostStuck):
            control.ask("add", "{}", timeout_s=0.1)


@pytest.fixture
def host_process(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that the folder names as its host."""
    process = subprocess.Popen(["sleep", "600"], env={**os.environ, processes.STACK: folder.name})
    (folder / layout.HOST).write_text(json.dumps({"pid": process.pid, "uid": folder.name}))
    yield process
    process.kill()
    process.wait()


def test_a_busy_host_is_left_alone(folder: Path, host_process: subprocess.Popen[bytes]) -> None:
    lock = take(folder / layout.LOCK)
    assert lock is not None
    with host(folder, {"remove": [None, "kept\n"], "ping": ["here\n"]}) as heard:
        driver.down(str(folder / "node0.json"), "{}", remove_s=0.2)
    os.close(lock)
    assert heard == ["remove", "ping", "remove"]
    assert host_process.poll() is None


def test_one_request_removes_many_nodes(folder: Path) -> None:
    with host(folder, {"trim": ["kept\n"]}) as heard:
        driver.trim(str(folder), '{"uid": "u", "count": 1}')
    assert heard == ["trim"]


def test_where_many_nodes_are_refused_each_is_asked_for(folder: Path) -> None:
    for name in ("node0", "node1", "node2", "host"):
        (folder / f"{name}.json").touch()
    answers: dict[str, list[str | None]] = {"trim": ["error there is nothing called 'trim' to do\n"] * 2}
    with host(folder, {**answers, "remove": ["kept\n"] * 2}) as heard:
        driver.trim(str(folder), '{"uid": "u", "count": 1}')
    assert heard == ["trim", "remove", "remove"]
    with (
        host(folder, {**answers, "remove": ["kept\n", "error processes 7 of node1 do not end\n", "kept\n"]}) as heard,
        pytest.raises(control.ControlRefused, match="of node1 do not end"),
    ):
        driver.trim(str(folder), '{"uid": "u", "count": 0}')
    assert heard == ["trim", "remove", "remove", "remove"]


def test_what_is_no_node_stays(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "node0" / "home").mkdir(parents=True)
    (folder / "notes").mkdir()
    (folder / "data.json").touch()
    for count, stays in (("-1", "node0"), ("null", "node0"), ("0", "data.json")):
        monkeypatch.setenv(driver.SPEC_VARIABLE, f'{{"uid": "{folder.name}", "count": {count}}}')
        assert driver.main(["trim", str(folder)]) == (stays == "node0")
        assert (folder / stays).exists()
    assert sorted(path.name for path in folder.iterdir()) == ["data.json", "notes"]
    assert capsys.readouterr().err.count("is no number of nodes") == 2


@pytest.mark.parametrize("name", ["../precious", "..", "notes", "host", "node0/home", "node", "", 0])
def test_what_is_no_name_of_a_node_leads_nowhere(
    tmp_path: Path, name: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names in a state file are from outside."""
    for place in ("precious", "nodes/notes", "nodes/host", "nodes/node0/home"):
        (tmp_path / place).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(driver.SPEC_VARIABLE, json.dumps({"uid": tmp_path.name, "name": name}))
    before = sorted(tmp_path.rglob("*"))
    assert driver.main(["down", str(tmp_path / "nodes" / "node0.json")]) == 1
    assert [path for path in before if not path.exists()] == []
    assert f"{name!r} is no name of a node" in capsys.readouterr().err
    with pytest.raises(ValueError, match="is no name of a node"):
        Spec.read(dict.fromkeys(("role", "uid", "user", "python", "public_key"), "x") | {"name": name})


@pytest.mark.slow
def test_a_process_that_does_not_end_keeps_no_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uid, kill = f"test-{uuid.uuid4().hex[:12]}", os.kill
    marks = [{processes.STACK: uid, processes.NODE: f"{uid}/node{number}"} for number in (1, 2)]
    foreign, other = (subprocess.Popen(["sleep", "600"], env={**os.environ, **mark}) for mark in marks)

    def refuse(pid: int, number: int) -> None:
        if pid == foreign.pid:
            raise PermissionError
        kill(pid, number)

    for name in ("node0", "node1", "node2"):
        (folder / name).mkdir()
    try:
        with monkeypatch.context() as owned:
            owned.setattr(os, "kill", refuse)
            with pytest.raises(driver.DriverError, match=f"processes {foreign.pid} do not end"):
                driver.trim(str(folder), json.dumps({"uid": uid, "count": 1}))
        assert other.wait(STUCK_S) == -signal.SIGTERM
        driver.trim(str(folder), json.dumps({"uid": uid, "count": 1}))
        assert foreign.wait(STUCK_S) == -signal.SIGTERM
        assert layout.node_names(folder) == ["node0"]
    finally:
        foreign.kill()
        other.kill()


def test_a_host_that_answers_nothing_is_ended(folder: Path, host_process: subprocess.Popen[bytes]) -> None:
    with host(folder, {"add": [None, 'node {"port": 7}\n'], "ping": [None]}):
        driver.up(str(folder / "node0.json"), "{}", add_s=0.2, ping_s=0.2)
    assert host_process.wait(STUCK_S) == -signal.SIGKILL
    assert (folder / "node0.json").read_text() == '{"port": 7}\n'


def test_a_refusal_is_told_and_writes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(driver.SPEC_VARIABLE, "{}")
    with host(folder, {"add": ["error OSError: no space left\n"]}):
        assert driver.main(["up", str(folder / "node0.json")]) == 1
    assert "no space left" in capsys.readouterr().err
    assert list(folder.iterdir()) == []
