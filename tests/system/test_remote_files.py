"""Files to and from real nodes: exact, complete or absent, and only those that changed."""

from __future__ import annotations

import hashlib
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.model.plan import Upload
from gpucourse.remote import host_probe, jobs
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.push import parcels, push
from gpucourse.remote.ssh import SshTransport
from tests.runs import Run, prepare
from tests.sshlab import Line, SshLab, find_marked_processes, on_openssh, ssh_lab
from tests.waiting import until

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshLab]:
    kind = getattr(request, "param", "simulated")
    with ssh_lab(kind, tmp_path_factory.mktemp(kind), 1) as lab:
        yield lab


@pytest.fixture
def fleet(lab: SshLab) -> Iterator[Fleet]:
    with Fleet(SshTransport(lab.key), lab.nodes) as fleet:
        yield fleet


def run_to_end(lab: SshLab, tmp_path: Path, script: str, *globs: str, uploads: tuple[Upload, ...] = ()) -> Run:
    run = prepare(lab, tmp_path, script, uploads=uploads).launch()
    assert [e.code for e in run.follow().node_exits] == [0], run.log()
    return run


@on_openssh
def test_push_keeps_names_modes_and_empty_files(lab: SshLab, tmp_path: Path) -> None:
    names = ["-rf", "with space", "quo\"te'd", "new\nline", "$(id)", "ünï/日本", "deep/er/still", "#%", "trailing ", "*?[x]"]
    uploads = []
    for number, name in enumerate(names):
        path = tmp_path / f"u{number}"
        path.write_bytes(name.encode() if number else b"")
        path.chmod(0o755 if number % 2 else 0o640)
        uploads.append(Upload(name=name, source=path))
    work = run_to_end(lab, tmp_path, "", uploads=tuple(uploads)).folder() / "work"
    for number, name in enumerate(names):
        assert (work / name).read_bytes() == (name.encode() if number else b"")
        assert os.access(work / name, os.X_OK) == bool(number % 2)


@on_openssh
def test_push_that_is_cut_leaves_no_half_file(lab: SshLab, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(random.Random(5).randbytes(1 << 20) * 30)
    line = Line(lab.nodes[0])
    try:
        with Fleet(SshTransport(lab.key), [line.node]) as fleet:
            link = fleet.link(line.node)
            wrapped = parcels([Upload(name="big", source=big)])
            push(link, [])
            line.cut_after(9_000_000, from_node=False)
            with pytest.raises(UnreachableError):
                push(link, wrapped)
            assert not (lab.homes["node0"] / ".gpucourse" / "store" / wrapped[0].key).exists()
            assert push(fleet.link(line.node), wrapped) == big.stat().st_size
            assert _digest(lab.homes["node0"] / ".gpucourse" / "store" / wrapped[0].key) == _digest(big)
    finally:
        line.close()


@on_openssh
def test_collect_copies_outputs_once(lab: SshLab, tmp_path: Path) -> None:
    script = (
        "import os\nout = os.environ['GPUCOURSE_OUT']\n"
        "os.makedirs(out + '/deep/er'); open(out + '/deep/er/m.json', 'w').write('{}')\n"
        "open(out + '/b', 'wb').write(bytes(range(256)))\n"
        "open('here.csv', 'w').write('1'); open('b', 'w').write('the one in outputs wins')\n"
        "os.mkdir('plots'); open('plots/p.png', 'w').write('p'); open('private', 'w').write('x')\n"
        "os.symlink('/etc/passwd', out + '/link'); os.symlink('/etc', 'etc'); os.mkfifo(out + '/pipe')\n"
        "open(out + '/huge', 'wb').truncate(5000)\n"
    )
    run = run_to_end(lab, tmp_path, script)
    globs = ("*.csv", "plots", "b", "etc/passwd", "../../../*", "/etc/*", "nothing-*")
    collection = run.collect(*globs, max_bytes=4000)
    got = {o.path.removeprefix("outputs/node0/"): (o.bytes, o.sha256) for o in collection.outputs}
    assert set(got) == {"deep/er/m.json", "b", "here.csv", "plots/p.png"}
    assert got["b"] == (256, hashlib.sha256(bytes(range(256))).hexdigest())
    refusal = {r.name: r.reason for r in collection.refused}
    assert set(refusal) == {"link", "pipe", "huge", "../../../*", "/etc/*", "etc/passwd"}
    assert refusal["huge"] == "too large: 4.9 KiB, the limit for one file is 3.9 KiB"
    assert "link" in refusal["link"]
    assert "plain file" in refusal["pipe"]
    assert "leads out" in refusal["../../../*"]
    assert collection.environments["node0"]["hostname"]
    assert collection.environments["node0"]["packages"]["torch"]
    inode = (run.paths.node_outputs("node0") / "b").stat().st_ino
    second_collection = run.collect(*globs, max_bytes=4000)
    assert {o.path: o.sha256 for o in second_collection.outputs} == {o.path: o.sha256 for o in collection.outputs}
    assert (run.paths.node_outputs("node0") / "b").stat().st_ino == inode, "what is home already does not travel again"
    run.fleet.close()


@on_openssh
def test_collect_continues_where_it_was_cut(lab: SshLab, tmp_path: Path) -> None:
    script = "import os\nfor n in range(40): open(os.environ['GPUCOURSE_OUT'] + f'/{n}', 'wb').write(bytes([n]) * 200_000)"
    line = Line(lab.nodes[0])
    try:
        run = prepare(lab, tmp_path, script, nodes=[line.node]).launch()
        run.follow()
        line.cut_after(3_000_000)
        collection = run.collect()
        assert line.cuts == 1
        assert collection.unreachable == []
        assert sorted(int(Path(o.path).name) for o in collection.outputs) == list(range(40))
        for n in range(40):
            assert (run.paths.node_outputs("node0") / str(n)).read_bytes() == bytes([n]) * 200_000
        line.refuse()
        refusals = run.collect()
        assert [missed.node for missed in refusals.unreachable] == ["node0"]
        assert refusals.outputs == []
        run.fleet.close()
    finally:
        line.close()


TEMPORARY = """
import os, socket, sys, tempfile
place = tempfile.mkdtemp(prefix="torchelastic_")
print(os.environ["TMPDIR"], flush=True)
socket.socket(socket.AF_UNIX).bind(os.path.join(tempfile.gettempdir(), "x" * 40))
open(os.path.join(place, "error.json"), "w").write("left")
if len(sys.argv) > 1: import time; time.sleep(300)
"""


@pytest.mark.parametrize("found_by", ["a look", "the end of the lab"])
def test_temporary_files_of_a_lost_run_are_removed(found_by: str, lab: SshLab, tmp_path: Path, fleet: Fleet) -> None:
    run = prepare(lab, tmp_path, TEMPORARY, "and stay").launch()
    link, run_id = fleet.link(lab.nodes[0]), run.plan.run_id
    until(lambda: any((run.folder() / "tmp").glob("*/error.json")), "the rank has left something")
    place = Path((run.folder() / "logs" / "rank0.log").read_text().strip())
    os.kill(int((run.folder() / "supervisor.pid").read_text()), signal.SIGKILL)
    if found_by == "a look":
        assert jobs.states(link, [run_id])[run_id].has_ended
    else:
        assert ("link", str(place)) in host_probe.find_belongings(link, "lab", [run_id]).found
        assert host_probe.clear(link, "lab", [run_id]).found == ()
    assert not os.path.lexists(place)
    assert not (run.folder() / "tmp").exists()
    assert not find_marked_processes(run.folder())


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()
