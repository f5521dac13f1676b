"""How files grow: outputs collected beside rsync over the same server, and what runs leave on a node's disk.

Times are by the clock, from the connection to the last file under its name, ours also on the disk; rsync syncs nothing. A row
has the medians of its rounds; in brackets the least, and the median of the processor time on this side of the connection.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import paramiko

from benchmarks.measure import seconds
from benchmarks.transfer import CIPHER
from gpucourse.model.node import Inventory
from gpucourse.model.plan import Upload
from gpucourse.remote.collect import collect
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.keys import known_hosts, ssh_config
from gpucourse.remote.ssh import WINDOW, SshTransport
from gpucourse.storage import FileBatch
from gpucourse.workspace.paths import RunPaths
from tests.runs import prepare
from tests.sshlab import KINDS, SshLab, ssh_lab

ROUNDS = 5
COUNTS = (100, 1000, 10_000)
MEGABYTES = (5, 50, 500)
RUNS = (1, 3, 10)
MB = 10**6


@dataclass(frozen=True)
class Cost:
    """What one side took in all rounds: by the clock, and of the processor on this side of the connection, in seconds."""

    clock_s: list[float]
    cpu_s: list[float]

    @property
    def median_s(self) -> float:
        """The median by the clock."""
        return statistics.median(self.clock_s)

    def __str__(self) -> str:
        return f"{self.median_s:.2f} s ({min(self.clock_s):.2f}, cpu {statistics.median(self.cpu_s):.2f})"


@dataclass(frozen=True)
class Transfer:
    """Outputs collected at growing sizes, beside another program. `most`: how many times as long as that the largest may take;
    None for a row that only tells what is possible at all."""

    what: str
    sizes: Sequence[str]
    ours: Sequence[Cost]
    theirs: Sequence[Cost]
    most: float | None
    program: str = "rsync"

    @property
    def keeps_promise(self) -> bool:
        """Whether the largest takes no longer than promised."""
        return self.most is None or self.ours[-1].median_s <= self.most * self.theirs[-1].median_s

    def __str__(self) -> str:
        costs = zip(self.sizes, self.ours, self.theirs, strict=True)
        times = "  ".join(f"{size}: {ours}, {self.program} {theirs}" for size, ours, theirs in costs)
        beside = f"{self.ours[-1].median_s / self.theirs[-1].median_s:.2f}x of {self.program}"
        promise = "" if self.most is None else f"  promise {self.most:g}x: {'held' if self.keeps_promise else 'NOT held'}"
        return f"{self.what:28} {times}  = {beside}{promise}  load {os.getloadavg()[0]:.0f}"


@dataclass(frozen=True)
class Disk:
    """What a node's disk holds after growing numbers of runs with the same upload, in bytes. `most`: how often the first."""

    what: str
    sizes: Sequence[str]
    taken: Sequence[int]
    most: float

    @property
    def keeps_promise(self) -> bool:
        """Whether the disk holds no more than promised."""
        return self.taken[-1] <= self.most * self.taken[0]

    def __str__(self) -> str:
        shown = "  ".join(f"{size}: {taken / MB:.0f} MB" for size, taken in zip(self.sizes, self.taken, strict=True))
        promise = f"promise {self.most:g}x: {'held' if self.keeps_promise else 'NOT held'}"
        return f"{self.what:28} {shown}  = {self.taken[-1] / self.taken[0]:.2f}x  {promise}"


def grow_files() -> Iterator[Transfer | Disk]:
    """Many small outputs, one large one and unchanged uploads, for each kind of node that this machine can stand up."""
    for kind in KINDS:
        if kind == "openssh" and shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin") is None:
            continue
        with tempfile.TemporaryDirectory(prefix="gpucourse-bench-") as folder, ssh_lab(kind, Path(folder) / kind, 1) as lab:
            yield _grow_transfers(lab, Path(folder), "outputs of 1 KB", COUNTS, lambda count: [1000] * count, most=1.5)
            yield _grow_transfers(lab, Path(folder), "MB in one output", MEGABYTES, lambda count: [count * MB], most=1.1)
            yield _receive_alone(lab, Path(folder))
            if kind == "simulated":
                yield _grow_disk(lab, Path(folder))
    with tempfile.TemporaryDirectory(prefix="gpucourse-bench-") as folder:
        yield _make_alone(Path(folder))


def _grow_transfers(
    lab: SshLab, folder: Path, what: str, counts: Sequence[int], sizes_of: Callable[[int], list[int]], *, most: float
) -> Transfer:
    pairs = [_compare(lab, folder, f"run-{count}-{what[0]}", sizes_of(count)) for count in counts]
    ours, theirs = zip(*pairs, strict=True)
    return Transfer(f"{what}, {lab.kind}", [f"{count}" for count in counts], ours, theirs, most)


def _compare(lab: SshLab, folder: Path, run_id: str, sizes: Sequence[int]) -> tuple[Cost, Cost]:
    """What it takes to collect files of these sizes: ours and rsync's."""
    outputs = lab.homes["node0"] / ".gpucourse" / "jobs" / run_id / "outputs"
    outputs.mkdir(parents=True)
    outputs.with_name("job.json").write_text("{}")
    block = random.Random(1).randbytes(MB)
    for number, size in enumerate(sizes):
        with (outputs / f"part-{number:05}.bin").open("wb") as file:
            for left in range(size, 0, -MB):
                file.write(block[: min(left, MB)])
    target = folder / "target"
    command = ["rsync", "-a", "-W", "-e", " ".join(_ssh(lab)), f"node0:{outputs}/", f"{target}/"]
    _collect(lab, run_id, target, len(sizes))  # the agent is on the node from now on
    costs = _take_turns(target, sum(sizes), lambda: _collect(lab, run_id, target, len(sizes)), lambda: _run(command))
    shutil.rmtree(outputs)
    return costs


def _receive_alone(lab: SshLab, folder: Path) -> Transfer:
    """The largest output as paramiko alone receives it, beside ssh: nothing is checked, hashed or kept."""
    node, large = lab.nodes[0], folder / "large"
    large.write_bytes(random.Random(1).randbytes(MB) * MEGABYTES[-1])

    def receive() -> None:
        with paramiko.Transport((node.address, node.port), default_window_size=WINDOW) as transport:
            transport.get_security_options().ciphers = (CIPHER,)
            transport.connect(username=node.user, pkey=paramiko.Ed25519Key.from_private_key_file(str(lab.key)))
            channel = transport.open_session()
            channel.exec_command(f"cat {large}")
            left = large.stat().st_size
            while data := channel.recv(1 << 18):
                left -= len(data)
        if left:
            raise AssertionError(f"{left} bytes did not come")

    ours, theirs = _take_turns(folder / "none", 0, receive, lambda: _run([*_ssh(lab), node.name, f"cat {large}"]))
    large.unlink()
    return Transfer(f"MB by paramiko alone, {lab.kind}", [f"{MEGABYTES[-1]}"], [ours], [theirs], None, "ssh")


def _make_alone(folder: Path) -> Transfer:
    """The most outputs as Python alone makes them of what is in its memory, beside rsync between two folders of one disk."""
    source, target, data = folder / "source", folder / "target", random.Random(1).randbytes(1000)
    source.mkdir()
    for number in range(COUNTS[-1]):
        (source / f"part-{number:05}.bin").write_bytes(data)

    def make() -> None:
        target.mkdir()
        batch = FileBatch(folder / "aside")
        for number in range(COUNTS[-1]):
            batch.write(f"{target}/part-{number:05}.bin", (data,), changed_ns=1_700_000_000_123_456_789)
        batch.commit()

    copy = ["rsync", "-a", "-W", f"{source}/", f"{target}/"]
    ours, theirs = _take_turns(target, COUNTS[-1] * len(data), make, lambda: _run(copy))
    return Transfer("files by Python alone", [f"{COUNTS[-1]}"], [ours], [theirs], None)


def _take_turns(target: Path, size: int, ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[Cost, Cost]:
    """What these take, in turns, each time with an empty target and nothing left to be written. Each leaves `size` bytes."""
    costs = Cost([], []), Cost([], [])
    for _ in range(ROUNDS):
        for cost, work in zip(costs, (ours, theirs), strict=True):
            shutil.rmtree(target, ignore_errors=True)
            os.sync()
            before = _count_cpu()
            cost.clock_s.append(seconds(work))
            cost.cpu_s.append(_count_cpu() - before)
            if (brought := sum(path.stat().st_size for path in target.rglob("*") if path.is_file())) != size:
                raise AssertionError(f"{brought} bytes of {size} were brought")
    shutil.rmtree(target, ignore_errors=True)
    return costs


def _count_cpu() -> float:
    """Seconds of the processor that this process and those that it has waited for took."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _collect(lab: SshLab, run_id: str, target: Path, count: int) -> None:
    with Fleet(SshTransport(lab.key), lab.nodes) as fleet:
        home = collect(fleet, run_id, (), RunPaths(target), 1 << 30, lambda _event: None)
    if len(home.outputs) != count:
        raise AssertionError(f"{len(home.outputs)} of {count} files were collected: {home.unreachable or home.refused[:1]}")


def _ssh(lab: SshLab) -> list[str]:
    """The words of ssh to the nodes of the lab."""
    return ["ssh", "-F", str(_write_config(lab)), "-c", CIPHER]


def _write_config(lab: SshLab) -> Path:
    config, hosts = lab.key.with_name("ssh_config"), lab.key.with_name("known_hosts")
    inventory = Inventory(stack="bench", nodes=tuple(lab.nodes))
    config.write_text(ssh_config(inventory, lab.key, hosts))
    hosts.write_text(known_hosts(inventory))
    return config


def _grow_disk(lab: SshLab, folder: Path) -> Disk:
    """Runs that bring the same 100 MB along and change nothing of them."""
    source = folder / "data.bin"
    source.write_bytes(random.Random(2).randbytes(MB) * 100)
    taken: list[int] = []
    for number in range(RUNS[-1]):
        run = prepare(lab, folder, "open('data.bin', 'rb').read()", uploads=(Upload(name="data.bin", source=source),))
        if any(end.code for end in run.launch().follow().node_exits):
            raise AssertionError(run.log().decode())
        if number + 1 in RUNS:
            taken.append(_count_bytes(lab.homes["node0"] / ".gpucourse"))
        run.fleet.close()
    return Disk("node's disk, 100 MB unchanged", [f"{count} runs" for count in RUNS], taken, most=1.1)


def _count_bytes(folder: Path) -> int:
    """What the files below a folder take on the disk, each once."""
    infos = {(info.st_dev, info.st_ino): info for path in folder.rglob("*") if (info := path.lstat())}
    return sum(info.st_blocks * 512 for info in infos.values())
