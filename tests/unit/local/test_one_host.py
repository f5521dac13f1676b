"""Slurm on one computer, the parts that start nothing: its files, its ports, and who cleans up after it."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.local import health, layout
from gpucourse.local.machines.daemons import Dead
from gpucourse.local.one_host import configuration, ports
from gpucourse.local.one_host.daemon import Daemon, PortTaken
from tests.slurm_cluster import OneHost

DATA = Path(__file__).resolve().parents[2] / "data" / "slurm" / "one_host"
UID = "course-0123abcd"
FOLDER = Path("/tmp/gpucourse-0123456789ab")


def _files() -> dict[str, str]:
    return OneHost(folder=Path(), key=Path(), uid=UID, workers=2).files()


def test_the_configuration_that_the_daemons_read() -> None:
    names = configuration.daemons(_files())
    assert names == ["slurmctld", "node1", "node2"]
    filled = configuration.fill_in(
        _files(),
        host="laptop",
        user="you",
        folder=FOLDER,
        ports={name: 17000 + at for at, name in enumerate(names)},
        first_job=101,
    )
    assert filled["slurm.conf"] == (DATA / "slurm.conf").read_text(encoding="utf-8")
    assert filled["gres.conf"] == "Name=gpu File=/dev/null\n"
    assert [name for name, text in filled.items() if "@" in text] == []


def test_nothing_of_the_systems_own_slurm_is_named_in_it() -> None:
    text = (DATA / "slurm.conf").read_text(encoding="utf-8")
    assert not [
        line for line in text.splitlines() if any(place in line for place in ("=/etc", "=/var", "=/run", "=slurm", "6817"))
    ]


def test_what_is_added_to_a_tasks_environment(tmp_path: Path) -> None:
    nodes = tmp_path / "it's a $HOME with blanks"
    program = tmp_path / configuration.TASK
    program.write_text(configuration.task(UID, nodes, nodes / "slurm" / "slurm.conf"), encoding="utf-8")
    program.chmod(0o755)
    said = subprocess.run([program], env={"SLURMD_NODENAME": "node2"}, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [
        f"export GPUCOURSE_STACK_UID={UID}",
        f"export GPUCOURSE_NODE_UID={UID}/node2",
        "export GPUCOURSE_NODE=node2",
        f"export SLURM_CONF={nodes}/slurm/slurm.conf",
        f"export HOME={nodes}/node2/home",
        "unset GPUCOURSE_SESSION",
    ]


def test_clusters_number_their_jobs_from_different_places() -> None:
    first = {configuration.first_job(f"course-{number}") for number in range(40)}
    assert len(first) > 20
    assert all(1 <= number < 10_000 for number in first)
    assert configuration.first_job(UID) == configuration.first_job(UID)


def test_ports_are_kept_and_chosen_anew_where_somebody_took_one() -> None:
    chosen = ports.choose_ports(["slurmctld", "node1", "node2"], {}, ())
    assert len(set(chosen.values())) == 3
    assert ports.choose_ports(["slurmctld", "node1", "node2"], chosen, ()) == chosen
    with socket.create_server(("127.0.0.1", chosen["node1"])):
        assert not ports.is_free(chosen["node1"])
        again = ports.choose_ports(["slurmctld", "node1", "node2"], chosen, ())
        assert {name for name, port in chosen.items() if again[name] != port} == {"node1"}
        assert ports.choose_ports(["slurmctld", "node1", "node2"], chosen, {"node1"}) == chosen  # it listens there itself
    assert set(ports.choose_ports(["slurmctld", "node1"], chosen, ())) == {"slurmctld", "node1"}


def test_no_free_port_is_said() -> None:
    with pytest.raises(ports.NoneFree, match="every port from 12000 to 19999 is taken"):
        ports.choose_ports(["slurmctld"], {}, (), free=lambda _port: False)


def test_who_listens_on_a_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        assert ports.listens(os.getpid(), port)
        assert not ports.listens(os.getppid(), port)
    assert not ports.listens(os.getpid(), port)


BUSY = """
import os, socket
before = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]
door = socket.create_server(("127.0.0.1", 0))
for handle in before:
    os.close(handle)
print(door.getsockname()[1], flush=True)
while True:
    for handle in [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]:
        os.close(handle)
"""


def test_who_opens_and_closes_other_files_meanwhile_listens_all_the_same() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as process:
        try:
            port = int(process.stdout.readline()) if process.stdout else 0
            assert all(ports.listens(process.pid, port) for _ in range(100))
        finally:
            process.kill()


def test_the_folder_of_sockets_has_a_short_name_and_is_swept(tmp_path: Path) -> None:
    uid = f"{tmp_path.name}-{os.getpid()}"
    folder = layout.sockets(uid)
    assert len(os.fsencode(folder / "munge.sock.lock")) < 100
    assert folder != layout.sockets(f"{uid}x")
    folder.mkdir(mode=0o700)
    (folder / "slurm").symlink_to(tmp_path)
    assert [left.id for left in health.find_leftovers(tmp_path / "nodes", uid, ())] == [str(folder)]
    health.end_everything(tmp_path / "nodes", uid)
    assert not folder.exists()
    assert stat.S_ISDIR(tmp_path.stat().st_mode)  # what the link led to is still there


@pytest.mark.parametrize(("said", "kind"), [("bind: Address already in use", PortTaken), ("cannot read slurm.conf", Dead)])
def test_a_daemon_that_found_its_port_taken_says_so(tmp_path: Path, said: str, kind: type[Dead]) -> None:
    daemon = Daemon("slurmctld", tmp_path / "said", lambda _pid: False)
    daemon.start(["sh", "-c", f"echo '{said}'; exit 1"], os.environ)
    with pytest.raises(Dead, match=said) as caught:
        asyncio.run(daemon.ready())
    assert type(caught.value) is kind
