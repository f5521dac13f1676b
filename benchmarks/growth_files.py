"""How files grow: outputs collected beside rsync over the same server, and what runs leave on a node's disk.

Times are by the clock, from the connection to the last file under its name, ours also on the disk; rsync syncs nothing.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import seconds
from benchmarks.transfer import CIPHER
from gpucourse.model.node import Inventory
from gpucourse.model.plan import Upload
from gpucourse.remote.collect import collect
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.keys import known_hosts, ssh_config
from gpucourse.remote.ssh import SshTransport
from gpucourse.workspace.paths import RunPaths
from tests.runs import prepare
from tests.sshlab import KINDS, SshLab, ssh_lab

ROUNDS = 3
COUNTS = (100, 1000, 10_000)
MEGABYTES = (5, 50, 500)
RUNS = (1, 3, 10)
MB = 10**6


@dataclass(frozen=True)
class Transfer:
    """Outputs collected at growing sizes, beside rsync, in seconds. `most`: how many times as long the largest may take."""

    what: str
    sizes: Sequence[str]
    ours_s: Sequence[float]
    rsync_s: Sequence[float]
    most: float

    @property
    def keeps_promise(self) -> bool:
        """Whether the largest takes no longer than promised."""
        return self.ours_s[-1] <= self.most * self.rsync_s[-1]

    def __str__(self) -> str:
        costs = zip(self.sizes, self.ours_s, self.rsync_s, strict=True)
        times = "  ".join(f"{size}: {ours:.2f} s (rsync {rsync:.2f} s)" for size, ours, rsync in costs)
        growth = f"{self.ours_s[-1] / self.ours_s[0]:.1f}x (rsync {self.rsync_s[-1] / self.rsync_s[0]:.1f}x)"
        beside = f"{self.ours_s[-1] / self.rsync_s[-1]:.2f}x of rsync"
        promise = f"promise {self.most:g}x: {'held' if self.keeps_promise else 'NOT held'}"
        return f"{self.what:28} {times}  = {growth}, {beside}  {promise}"


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
            if kind == "simulated":
                yield _grow_disk(lab, Path(folder))


def _grow_transfers(
    lab: SshLab, folder: Path, what: str, counts: Sequence[int], sizes_of: Callable[[int], list[int]], *, most: float
) -> Transfer:
    pairs = [_compare(lab, folder, f"run-{count}-{what[0]}", sizes_of(count)) for count in counts]
    ours, rsync = zip(*pairs, strict=True)
    return Transfer(f"{what}, {lab.kind}", [f"{count}" for count in counts], ours, rsync, most)


def _compare(lab: SshLab, folder: Path, run_id: str, sizes: Sequence[int]) -> tuple[float, float]:
    """The medians of collecting files of these sizes: ours and rsync's, which take turns."""
    outputs = lab.homes["node0"] / ".gpucourse" / "jobs" / run_id / "outputs"
    outputs.mkdir(parents=True)
    outputs.with_name("job.json").write_text("{}")
    block = random.Random(1).randbytes(MB)
    for number, size in enumerate(sizes):
        with (outputs / f"part-{number:05}.bin").open("wb") as file:
            for left in range(size, 0, -MB):
                file.write(block[: min(left, MB)])
    config, target = _write_config(lab), folder / "target"
    ssh = f"ssh -F {config} -c {CIPHER}"
    command = ["rsync", "-a", "-W", "-e", ssh, f"node0:{outputs}/", f"{target}/"]
    works = {
        "ours": lambda: _collect(lab, run_id, target, len(sizes)),
        "rsync": lambda: subprocess.run(command, check=True, capture_output=True),
    }
    _collect(lab, run_id, target, len(sizes))  # the agent is on the node from now on
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            shutil.rmtree(target, ignore_errors=True)
            os.sync()
            taken[name].append(seconds(work))
    shutil.rmtree(outputs)
    shutil.rmtree(target)
    return statistics.median(taken["ours"]), statistics.median(taken["rsync"])


def _collect(lab: SshLab, run_id: str, target: Path, count: int) -> None:
    with Fleet(SshTransport(lab.key), lab.nodes) as fleet:
        home = collect(fleet, run_id, (), RunPaths(target), 1 << 30, lambda _event: None)
    if len(home.outputs) != count:
        raise AssertionError(f"{len(home.outputs)} of {count} files were collected: {home.unreachable or home.refused[:1]}")


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
