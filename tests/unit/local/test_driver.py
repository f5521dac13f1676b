"""How a driver reacts to the answers of a scripted host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.local import driver, layout, processes
from gpucourse.workspace.lock import take
from tests.unit.local.scripted_host import host
from tests.waiting import STUCK_S


@pytest.fixture
def host_process(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that is recorded as the folder's host."""
    process = subprocess.Popen(["sleep", "600"], env={**os.environ, processes.STACK: folder.name})
    (folder / layout.HOST).write_text(json.dumps({"pid": process.pid, "uid": folder.name}))
    yield process
    process.kill()
    process.wait()


def test_remove_leaves_a_busy_host_alone(folder: Path, host_process: subprocess.Popen[bytes]) -> None:
    lock = take(folder / layout.LOCK)
    assert lock is not None
    with host(folder, {"remove": [None, "kept\n"], "ping": ["here\n"]}) as heard:
        driver.remove(str(folder), "{}", remove_s=0.2)
    os.close(lock)
    assert heard == ["remove", "ping", "remove"]
    assert host_process.poll() is None


def test_main_trim_leaves_what_is_no_node(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "node0" / "home").mkdir(parents=True)
    (folder / "notes").mkdir()
    (folder / "data.json").touch()
    for count, stays in (("-1", "node0"), ("null", "node0"), ("0", "data.json")):
        monkeypatch.setenv(driver.SPEC_VARIABLE, f'{{"uid": "{folder.name}", "count": {count}}}')
        assert driver.main(["trim", str(folder)]) == (stays == "node0")
        assert (folder / stays).exists()
    assert sorted(path.name for path in folder.iterdir()) == ["data.json", "notes"]
    assert capsys.readouterr().err.count("is not a number of nodes") == 2


@pytest.mark.parametrize("name", ["../precious", "..", "notes", "host", "node0/home", "node", "", 0])
def test_main_down_refuses_what_is_no_name_of_a_node(
    tmp_path: Path, name: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pass names from a state file, which others may have written."""
    for place in ("precious", "nodes/notes", "nodes/host", "nodes/node0/home"):
        (tmp_path / place).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(driver.SPEC_VARIABLE, json.dumps({"uid": tmp_path.name, "name": name}))
    old_paths = sorted(tmp_path.rglob("*"))
    assert driver.main(["down", str(tmp_path / "nodes" / "node0.json")]) == 1
    assert [path for path in old_paths if not path.exists()] == []
    assert f"{name!r} is not the name of a node" in capsys.readouterr().err


def test_up_ends_a_host_that_answers_nothing(folder: Path, host_process: subprocess.Popen[bytes]) -> None:
    with host(folder, {"add": [None, 'node {"port": 7}\n'], "ping": [None]}):
        driver.up(str(folder / "node0.json"), "{}", add_s=0.2, ping_s=0.2)
    assert host_process.wait(STUCK_S) == -signal.SIGKILL
    assert (folder / "node0.json").read_text() == '{"port": 7}\n'


def test_up_prints_a_refusal_and_writes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(driver.SPEC_VARIABLE, "{}")
    with host(folder, {"add": ["error OSError: no space left\n"]}):
        assert driver.main(["up", str(folder / "node0.json")]) == 1
    assert "no space left" in capsys.readouterr().err
    assert list(folder.iterdir()) == []
