"""The process that hosts simulated nodes, and the drivers that start, repair and end it: what each does when the other dies."""

from __future__ import annotations

import os
import signal
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
from tests.waiting import until

pytestmark = pytest.mark.system

DETACHED = "GPUCOURSE_RUN_DIR=/run/7 sleep 601"
"""A run that needs no host."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedNodes]:
    with serve_simulated_nodes(tmp_path_factory.mktemp("host"), 2) as lab:
        yield lab


@pytest.fixture
def lab(shared: SimulatedNodes) -> SimulatedNodes:
    """Return two healthy nodes. Damage by an earlier test is repaired."""
    for name in ("node0", "node1"):
        shared.up(name)
    return shared


@pytest.fixture
def own_lab(tmp_path: Path) -> Iterator[SimulatedNodes]:
    """Return two nodes that no other test uses."""
    with serve_simulated_nodes(tmp_path, 2) as lab:
        yield lab


@pytest.fixture
def empty_lab(tmp_path: Path) -> Iterator[SimulatedNodes]:
    """Yield a lab whose nodes are brought up by the test."""
    with serve_simulated_nodes(tmp_path, 0, key=make_key(tmp_path / "key")) as lab:
        yield lab


def find_sick_nodes(lab: SimulatedNodes) -> dict[str, str]:
    """Return what is wrong with each unhealthy node."""
    return {node.node: node.detail for node in health.inspect(lab.folder, ["node0", "node1"]) if not node.healthy}


def has_ended(pid: int) -> bool:
    return not processes.command_of(pid)


def end_host(lab: SimulatedNodes, number: int = signal.SIGKILL) -> int:
    pid = lab.host_pid
    os.kill(pid, number)
    until(lambda: has_ended(pid) and not is_held(lab.folder / layout.LOCK), "the host ends")
    return pid


def start_on(lab: SimulatedNodes, name: str, command: str) -> int:
    """Start a background process on a node, as a session leaves it. Return its id once it runs its program."""
    pid = int(lab.ssh(name, f"{command} >/dev/null 2>&1 </dev/null & echo $!").stdout)
    until(lambda: command.endswith(processes.command_of(pid) or "-"), "it runs its program")
    return pid


def test_drivers_bring_two_nodes_up_and_leave_nothing_when_they_go(own_lab: SimulatedNodes) -> None:
    names = ["node0", "node1"]
    assert health.inspect(own_lab.folder, names) == [NodeHealth(node=name, healthy=True) for name in names]
    assert own_lab.folder.stat().st_mode & 0o777 == 0o700
    assert {(node.role, node.instance_type, node.gpus, node.mode) for node in own_lab.nodes} == {
        ("head", "simulated", 0, "local"),
        ("worker", "simulated", 0, "local"),
    }
    old_nodes, ports, pid = list(own_lab.nodes), own_lab.ports, own_lab.host_pid
    for node in old_nodes:
        own_lab.up(node.name)
    assert (own_lab.nodes, own_lab.host_pid) == (old_nodes, pid), "to bring them up again changes nothing"
    assert {line.split()[0] for line in own_lab.leftovers()} == {"process", "port", "file"}
    own_lab.stop()
    assert has_ended(pid)
    assert list(own_lab.folder.iterdir()) == []
    assert health.find_leftovers(own_lab.folder, own_lab.uid, ports) == []


def test_driver_heals_a_killed_host_with_the_same_ports(lab: SimulatedNodes) -> None:
    old_nodes = list(lab.nodes)
    attached, detached = start_on(lab, "node1", "sleep 600"), start_on(lab, "node1", DETACHED)
    end_host(lab)
    assert find_sick_nodes(lab) == dict.fromkeys(["node0", "node1"], "the process that hosts the nodes has ended")
    lab.up("node0")  # one node's driver is enough: the host brings every node back
    assert (find_sick_nodes(lab), [lab.read(name) for name in ("node0", "node1")]) == ({}, old_nodes)
    assert has_ended(attached), "what a crash left over is swept"
    assert not has_ended(detached), "a run that does not need the host goes on"
    assert lab.ssh("node1", "exit 5").returncode == 5


def test_host_ends_everything_at_sigterm_and_keeps_the_homes(lab: SimulatedNodes) -> None:
    old_nodes = list(lab.nodes)
    running = [start_on(lab, "node0", "sleep 600"), start_on(lab, "node1", DETACHED)]
    (lab.home("node0") / "result").write_text("kept")
    end_host(lab, signal.SIGTERM)
    assert all(has_ended(pid) for pid in running)
    assert not (lab.folder / layout.SOCKET).exists()
    lab.up("node1")
    assert (find_sick_nodes(lab), lab.read("node0"), lab.read("node1")) == ({}, *old_nodes)
    assert lab.ssh("node0", "cat result").stdout == b"kept"


def test_host_ends_when_its_folder_is_removed(lab: SimulatedNodes) -> None:
    pid, running = lab.host_pid, start_on(lab, "node0", DETACHED)
    take_away(lab.folder)
    until(lambda: has_ended(pid), "the host ends")
    assert has_ended(running)
    assert lab.leftovers() == []
    lab.up("node0"), lab.up("node1")
    assert find_sick_nodes(lab) == {}


def test_driver_heals_a_node_that_lost_a_part(lab: SimulatedNodes) -> None:
    for name in ("node0.json", "node0", "node0/home", "node0/host_key", "node0/spec.json", "host.json"):
        layout.remove(lab.folder / name)
        if name in {"node0.json", "node0/home", "node0"}:
            assert list(find_sick_nodes(lab)) == ["node0"], name
        lab.up("node0")
        assert find_sick_nodes(lab) == {}, name
        assert lab.ssh("node0", "pwd").stdout.decode().strip() == str(lab.home("node0"))


def test_many_drivers_start_one_host(empty_lab: SimulatedNodes) -> None:
    count = 6
    with ThreadPoolExecutor(count) as pool:
        result = list(pool.map(lambda number: empty_lab.drive("up", f"node{number}"), range(count)))
    assert [process.returncode for process in result] == [0] * count
    carriers = processes.list_carriers(processes.marker(processes.STACK, empty_lab.uid))
    assert [pid for pid in carriers if processes.command_of(pid)] == [empty_lab.host_pid]
    assert len({empty_lab.read(f"node{number}").port for number in range(count)}) == count
    with ThreadPoolExecutor(count) as pool:
        result = list(pool.map(lambda number: empty_lab.drive("down", f"node{number}"), range(count)))
    assert [process.returncode for process in result] == [0] * count
    assert empty_lab.leftovers() == []


@pytest.mark.parametrize(("moment", "verb"), [("host.json", "up"), ("node0", "down")])
def test_next_driver_continues_when_one_was_killed(empty_lab: SimulatedNodes, moment: str, verb: str) -> None:
    kill_driver_when(empty_lab, "up", (empty_lab.folder / moment).exists)
    if verb == "up":
        empty_lab.up("node0")
        assert empty_lab.ssh("node0", "exit 4").returncode == 4
    assert empty_lab.drive("down", "node0").returncode == 0
    until(lambda: empty_lab.leftovers() == [], "the host that nobody waited for ends")


def kill_driver_when(lab: SimulatedNodes, verb: str, has_come: Callable[[], bool]) -> None:
    command, environment = lab.command(verb, "node0")
    driver = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    until(lambda: has_come() or driver.poll() is not None, "the moment")
    driver.kill()
    driver.wait()


@pytest.mark.parametrize(
    "damage", slow_after(2, "none", "host killed", "folder gone", "files gone", "files garbled", "host stopped")
)
def test_trim_removes_every_node_from_any_state(lab: SimulatedNodes, damage: str) -> None:
    running, pid = start_on(lab, "node0", DETACHED), lab.host_pid
    if damage == "host stopped":
        os.kill(lab.host_pid, signal.SIGSTOP)
    elif damage != "none":
        end_host(lab)
    if damage == "files gone":
        for name in ("node0.json", "node0", "node1.json", "node1"):
            layout.remove(lab.folder / name)
    elif damage == "folder gone":
        take_away(lab.folder)
    elif damage == "files garbled":
        for path in (lab.folder / layout.HOST, lab.folder / "node0.json", layout.spec_file(lab.folder, "node0")):
            path.write_text("{")
    assert lab.trim(0).returncode == 0
    assert has_ended(running)
    assert has_ended(pid)
    assert lab.leftovers() == []
    assert not lab.folder.exists() or list(lab.folder.iterdir()) == []
