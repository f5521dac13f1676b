"""The process that hosts simulated nodes and the drivers that start, heal and end it: what each does when the other dies."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpucourse.local import health, layout, processes
from gpucourse.model.deployment import NodeHealth
from gpucourse.workspace.lock import is_held
from tests.parts import slow_after
from tests.simulated import SimulatedNodes, make_key, serve_simulated_nodes, take_away
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[SimulatedNodes]:
    with serve_simulated_nodes(tmp_path, 2) as lab:
        yield lab


def sick(lab: SimulatedNodes) -> dict[str, str]:
    """What is wrong with each node that is not well."""
    return {node.node: node.detail for node in health.inspect(lab.folder, ["node0", "node1"]) if not node.healthy}


def has_ended(pid: int) -> bool:
    return not processes.command_of(pid)


def end_host(lab: SimulatedNodes, number: int = signal.SIGKILL) -> int:
    pid = lab.host_pid
    os.kill(pid, number)
    until(lambda: has_ended(pid) and not is_held(lab.folder / layout.LOCK), "the host ends")
    return pid


def start_on(lab: SimulatedNodes, name: str, command: str) -> int:
    """A process in the background of a node, as a session leaves it, once it runs its program; its id."""
    pid = int(lab.ssh(name, f"{command} >/dev/null 2>&1 </dev/null & echo $!").stdout)
    until(lambda: command.endswith(processes.command_of(pid) or "-"), "it runs its program")
    return pid


def test_two_nodes_and_nothing_afterwards(lab: SimulatedNodes) -> None:
    names = ["node0", "node1"]
    assert health.inspect(lab.folder, names) == [NodeHealth(node=name, healthy=True) for name in names]
    assert lab.folder.stat().st_mode & 0o777 == 0o700
    assert {(node.role, node.instance_type, node.gpus, node.mode) for node in lab.nodes} == {
        ("head", "simulated", 0, "local"),
        ("worker", "simulated", 0, "local"),
    }
    assert {line.split()[0] for line in lab.leftovers()} == {"process", "port", "file"}
    ports, pid = lab.ports, lab.host_pid
    lab.stop()
    assert has_ended(pid)
    assert list(lab.folder.iterdir()) == []
    assert health.find_leftovers(lab.folder, lab.uid, ports) == []


def test_a_low_limit_of_open_files_is_raised(tmp_path: Path) -> None:
    with serve_simulated_nodes(tmp_path, 0, key=make_key(tmp_path / "key")) as lab:
        command, environment = lab.command("up", "node0")
        words = ["/bin/sh", "-c", 'ulimit -S -n 64; exec "$@"', "sh", *command]
        subprocess.run(words, env=environment, check=True, timeout=STUCK_S)
        lab.nodes = [lab.read("node0")]
        assert int(lab.ssh("node0", "ulimit -S -n").stdout) > 64


def test_up_again_changes_nothing(lab: SimulatedNodes) -> None:
    before, pid = list(lab.nodes), lab.host_pid
    for node in before:
        lab.up(node.name)
    assert (lab.nodes, lab.host_pid) == (before, pid)


def test_a_killed_host_is_noticed_and_healed_with_the_same_ports(lab: SimulatedNodes) -> None:
    before = list(lab.nodes)
    attached, detached = start_on(lab, "node1", "sleep 600"), start_on(lab, "node1", "GPUCOURSE_RUN_DIR=/run/7 sleep 601")
    end_host(lab)
    assert sick(lab) == dict.fromkeys(["node0", "node1"], "the process that hosts the nodes has ended")
    lab.up("node0")  # one node's driver is enough: the host brings every node back
    assert (sick(lab), [lab.read(name) for name in ("node0", "node1")]) == ({}, before)
    assert has_ended(attached), "what a crash left over is swept"
    assert not has_ended(detached), "a run that does not need the host goes on"
    assert lab.ssh("node1", "exit 5").returncode == 5


def test_sigterm_ends_everything_that_runs_and_keeps_the_homes(lab: SimulatedNodes) -> None:
    before = list(lab.nodes)
    running = [start_on(lab, "node0", "sleep 600"), start_on(lab, "node1", "GPUCOURSE_RUN_DIR=/run/7 sleep 601")]
    (lab.home("node0") / "result").write_text("kept")
    end_host(lab, signal.SIGTERM)
    assert all(has_ended(pid) for pid in running)
    assert not (lab.folder / layout.SOCKET).exists()
    lab.up("node1")
    assert (sick(lab), lab.read("node0"), lab.read("node1")) == ({}, *before)
    assert lab.ssh("node0", "cat result").stdout == b"kept"


def test_a_port_that_was_taken_meanwhile(lab: SimulatedNodes) -> None:
    before = lab.node("node0")
    end_host(lab)
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", before.port))
        thief.listen()
        lab.up("node1")
        moved = lab.read("node0")
        assert moved.port != before.port
        assert (moved.host_key, lab.read("node1")) == (before.host_key, lab.node("node1"))
        assert sick(lab) == {}


@pytest.mark.slow
def test_a_stopped_host_is_noticed_and_replaced(lab: SimulatedNodes) -> None:
    before, pid = list(lab.nodes), lab.host_pid
    os.kill(pid, signal.SIGSTOP)
    assert all("silent" in reason for reason in sick(lab).values())
    lab.up("node0")
    assert has_ended(pid)
    assert (sick(lab), [lab.read(name) for name in ("node0", "node1")]) == ({}, before)


@pytest.mark.parametrize("what", slow_after(1, "folder", "content", "socket"))
def test_a_host_ends_when_its_folder_is_taken_away(lab: SimulatedNodes, what: str) -> None:
    pid, running = lab.host_pid, start_on(lab, "node0", "GPUCOURSE_RUN_DIR=/run/7 sleep 600")
    if what == "socket":
        (lab.folder / layout.SOCKET).unlink()
    else:
        take_away(lab.folder)
        if what == "content":
            lab.folder.mkdir()
    until(lambda: has_ended(pid), "the host ends")
    assert has_ended(running)
    if what != "socket":
        assert lab.leftovers() == []
        assert not lab.folder.exists() or list(lab.folder.iterdir()) == []
    before = lab.ports
    lab.up("node0"), lab.up("node1")
    assert sick(lab) == {}
    assert what != "socket" or lab.ports == before


@pytest.mark.parametrize(
    "name", slow_after(2, "node0.json", "node0", "node0/home", "node0/host_key", "node0/spec.json", "host.json")
)
def test_a_node_that_lost_a_part_is_healed(lab: SimulatedNodes, name: str) -> None:
    layout.remove(lab.folder / name)
    if name in {"node0.json", "node0/home", "node0"}:
        assert list(sick(lab)) == ["node0"]
    lab.up("node0")
    assert sick(lab) == {}
    assert lab.ssh("node0", "pwd").stdout.decode().strip() == str(lab.home("node0"))


def test_many_drivers_start_one_host(tmp_path: Path) -> None:
    with serve_simulated_nodes(tmp_path, 0, key=make_key(tmp_path / "key")) as lab:
        with ThreadPoolExecutor(12) as pool:
            done = list(pool.map(lambda number: lab.drive("up", f"node{number}"), range(12)))
        assert [process.returncode for process in done] == [0] * 12
        hosts = [
            pid for pid in processes.list_carriers(processes.marker(processes.STACK, lab.uid)) if processes.command_of(pid)
        ]
        assert hosts == [lab.host_pid]
        assert len({lab.read(f"node{number}").port for number in range(12)}) == 12
        with ThreadPoolExecutor(12) as pool:
            done = list(pool.map(lambda number: lab.drive("down", f"node{number}"), range(12)))
        assert [process.returncode for process in done] == [0] * 12
        assert lab.leftovers() == []


@pytest.mark.parametrize("moment", slow_after(2, "host.json", "node0", "folder", "host.lock", "node0/spec.json"))
@pytest.mark.parametrize("then", ["up", "down"])
def test_a_driver_killed_in_the_middle(tmp_path: Path, moment: str, then: str) -> None:
    with serve_simulated_nodes(tmp_path, 0, key=make_key(tmp_path / "key")) as lab:
        kill_driver_when(lab, "up", (lab.folder if moment == "folder" else lab.folder / moment).exists)
        if then == "up":
            lab.up("node0")
            assert lab.ssh("node0", "exit 4").returncode == 4
        assert lab.drive("down", "node0").returncode == 0
        until(lambda: lab.leftovers() == [], "the host that nobody waited for ends")


def kill_driver_when(lab: SimulatedNodes, verb: str, now: Callable[[], bool]) -> None:
    command, environment = lab.command(verb, "node0")
    driver = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    until(lambda: now() or driver.poll() is not None, "the moment")
    driver.kill()
    driver.wait()


@pytest.mark.parametrize(
    "damage", slow_after(2, "host killed", "folder gone", "host killed, file gone", "files garbled", "nothing there")
)
def test_down_from_any_state(lab: SimulatedNodes, damage: str) -> None:
    running = start_on(lab, "node0", "GPUCOURSE_RUN_DIR=/run/7 sleep 600")
    if damage != "nothing there":
        end_host(lab)
    if damage == "host killed, file gone":
        (lab.folder / "node0.json").unlink()
        shutil.rmtree(lab.folder / "node1")
    elif damage == "folder gone":
        take_away(lab.folder)
    elif damage == "files garbled":
        for path in (lab.folder / layout.HOST, lab.folder / "node0.json", layout.spec_file(lab.folder, "node0")):
            path.write_text("{")
    else:
        lab.stop()
    for name in ("node0", "node1"):
        assert lab.drive("down", name).returncode == 0
    assert has_ended(running)
    assert lab.leftovers() == []


def test_one_driver_takes_every_node_down(lab: SimulatedNodes) -> None:
    running, pid = start_on(lab, "node1", "GPUCOURSE_RUN_DIR=/run/7 sleep 600"), lab.host_pid
    assert lab.trim(0).returncode == 0
    assert has_ended(running)
    assert has_ended(pid)
    assert list(lab.folder.iterdir()) == []
    assert lab.leftovers() == []


@pytest.mark.parametrize(
    "damage", slow_after(2, "host killed", "folder gone", "files gone", "files garbled", "host stopped", "nothing there")
)
def test_every_node_goes_from_any_state(lab: SimulatedNodes, damage: str) -> None:
    running = start_on(lab, "node0", "GPUCOURSE_RUN_DIR=/run/7 sleep 600")
    if damage == "host stopped":
        os.kill(lab.host_pid, signal.SIGSTOP)
    elif damage != "nothing there":
        end_host(lab)
    if damage == "files gone":
        for name in ("node0.json", "node0", "node1.json", "node1"):
            layout.remove(lab.folder / name)
    elif damage == "folder gone":
        take_away(lab.folder)
    elif damage == "files garbled":
        for path in (lab.folder / layout.HOST, lab.folder / "node0.json", layout.spec_file(lab.folder, "node0")):
            path.write_text("{")
    elif damage == "nothing there":
        lab.stop()
    assert lab.trim(0).returncode == 0
    assert has_ended(running)
    assert lab.leftovers() == []
    assert not lab.folder.exists() or list(lab.folder.iterdir()) == []


@pytest.mark.parametrize("host", ["alive", "killed"])
def test_nodes_below_the_count_stay(tmp_path: Path, host: str) -> None:
    with serve_simulated_nodes(tmp_path, 3) as lab:
        stays, goes = (start_on(lab, name, "GPUCOURSE_RUN_DIR=/run/7 sleep 600") for name in ("node0", "node2"))
        (lab.folder / "kept").mkdir()
        if host == "killed":
            end_host(lab)
        assert lab.trim(1).returncode == 0
        assert not has_ended(stays)
        assert has_ended(goes)
        assert layout.node_names(lab.folder) == ["node0"]
        assert (lab.folder / "kept").is_dir(), "what is no numbered node is left alone"
        assert lab.up("node0").port == lab.ports[0]
        assert lab.ssh("node0", "exit 7").returncode == 7


FOREIGN = """
import os
kill = os.kill
def refuse(pid, number):
    if os.path.exists({marks!r} + f"/{{pid}}"):
        raise PermissionError
    kill(pid, number)
os.kill = refuse
"""  # a process that the host may not end, as one that `sudo` started


@pytest.mark.slow
def test_a_node_whose_process_does_not_end_is_not_forgotten(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(FOREIGN.format(marks=str(tmp_path)))
    with serve_simulated_nodes(tmp_path, 0, key=make_key(tmp_path / "key")) as lab:
        assert lab.drive("up", "node0", PYTHONPATH=str(tmp_path)).returncode == 0
        lab.up("node0"), lab.up("node1")
        running = start_on(lab, "node1", "GPUCOURSE_RUN_DIR=/run/7 sleep 600")
        (tmp_path / str(running)).touch()
        refused = lab.trim(1)
        assert (refused.returncode, has_ended(running)) == (1, False)
        assert f"processes {running} of node1 do not end" in refused.stderr
        (tmp_path / str(running)).unlink()
        assert lab.trim(1).returncode == 0
        assert has_ended(running)
        assert layout.node_names(lab.folder) == ["node0"]


def test_a_new_stack_in_the_folder_of_a_lost_one(lab: SimulatedNodes) -> None:
    (lab.home("node0") / "old").write_text("of the old stack")
    pid, running = lab.host_pid, start_on(lab, "node0", "GPUCOURSE_RUN_DIR=/run/7 sleep 600")
    old, lab.uid = lab.uid, f"{lab.uid}-new"
    lab.up("node0")
    lab.up("node1")
    assert has_ended(pid)
    assert has_ended(running)
    assert processes.list_carriers(processes.marker(processes.STACK, old)) == []
    assert lab.ssh("node0", "ls").stdout == b""


def test_names_that_break_careless_programs(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "workspace" $(touch x) \\ ünïcödé 学' / ("long" * 30)
    folder.mkdir(parents=True)
    with serve_simulated_nodes(folder, 1, key=make_key(tmp_path / "key")) as lab:
        assert len(os.fsencode(lab.folder)) > 108
        assert lab.ssh("node0", "pwd; cd; pwd").stdout.decode().splitlines() == [str(lab.home("node0"))] * 2
        assert sick(lab).keys() == {"node1"}
        lab.stop()
        assert lab.leftovers() == []


def test_without_the_server_library_the_reason_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "asyncssh.py").write_text("raise ModuleNotFoundError(\"No module named 'asyncssh'\")\n")
    with serve_simulated_nodes(tmp_path, 0, key=make_key(tmp_path / "key")) as lab:
        done = lab.drive("up", "node0", PYTHONPATH=str(broken))
        assert done.returncode == 1
        assert "No module named 'asyncssh'" in done.stderr
        until(lambda: not is_held(lab.folder / layout.LOCK), "the end of the host")
        assert lab.drive("down", "node0").returncode == 0
        assert lab.leftovers() == []


def test_everything_ends_by_hand(lab: SimulatedNodes) -> None:
    start_on(lab, "node0", "GPUCOURSE_RUN_DIR=/run/7 sleep 600")
    os.kill(lab.host_pid, signal.SIGSTOP)
    removed = health.end_everything(lab.folder, lab.uid)
    assert any("sleep 600" in words for words in removed)
    assert str(lab.folder / "node0") in removed
    assert lab.leftovers() == []
    assert health.end_everything(lab.folder, lab.uid) == []
