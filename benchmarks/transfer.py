"""Send files to a node and collect outputs from it, compared with `rsync` over the same server with the same cipher, on both
kinds of node.

Times are elapsed times, from the connection to the last file. Every round begins with an empty target and with no data left to
flush.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.measure import Row, attempt, medians, seconds
from gpucourse.model.node import Inventory
from gpucourse.model.plan import Upload
from gpucourse.remote.collect import collect
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.keys import known_hosts, ssh_config
from gpucourse.remote.push import parcels, push
from gpucourse.remote.ssh import SshTransport
from gpucourse.workspace.paths import RunPaths
from tests.sshlab import KINDS, SshLab, ssh_lab

CIPHER = "aes128-gcm@openssh.com"
ROUNDS = 5
MB = 10**6
MAX_RATIO, MAX_RATIO_OF_MANY = 1.5, 3.0
PUSHED = {"200 MB in one file": [200 * MB], "500 small files": [2000] * 500}
COLLECTED = {"500 MB in one output": ([500 * MB], MAX_RATIO), "10,000 outputs of 1 KB": ([1000] * 10_000, MAX_RATIO_OF_MANY)}


def measure() -> Iterator[Row]:
    """Yield `push` and `collect` for each kind of node that this machine can start."""
    for kind in KINDS:
        if kind == "openssh" and shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin") is None:
            continue
        yield from attempt(f"transfer, {kind} node", partial(_measure_kind, kind))


def _measure_kind(kind: str) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="gpucourse-bench-") as name, ssh_lab(kind, Path(name) / kind, 1) as lab:
        folder, home = Path(name), lab.homes["node0"]
        rsync = ["rsync", "-a", "-W", "-e", f"ssh -F {_write_config(lab)} -c {CIPHER}"]
        for what, sizes in PUSHED.items():
            source, target = folder / "source", home / "target"
            _write_files(source, sizes)
            ours = partial(_push, lab, source, sum(sizes))
            theirs = partial(_run, [*rsync, f"{source}/", f"node0:{target}"])
            stores = (home / ".gpucourse" / "store", target)
            yield _compare(f"push {what}, {kind} node", ours, theirs, stores, MAX_RATIO)
            shutil.rmtree(source)
        for what, (sizes, most) in COLLECTED.items():
            run_id, target = f"run-{len(sizes)}", folder / "target"
            outputs = home / ".gpucourse" / "jobs" / run_id / "outputs"
            _write_files(outputs, sizes)
            outputs.with_name("job.json").write_text("{}")
            ours = partial(_collect, lab, run_id, target, len(sizes))
            theirs = partial(_run, [*rsync, f"node0:{outputs}/", f"{target}/"])
            ours()  # this also puts the agent on the node
            yield _compare(f"collect {what}, {kind} node", ours, theirs, (target,), most)
            shutil.rmtree(outputs)


def _compare(what: str, ours: Callable[[], object], theirs: Callable[[], object], targets: Sequence[Path], most: float) -> Row:
    def measure_afresh(work: Callable[[], object]) -> float:
        for target in targets:
            shutil.rmtree(target, ignore_errors=True)
        os.sync()
        return seconds(work)

    ours_s, theirs_s = medians(partial(measure_afresh, ours), partial(measure_afresh, theirs), rounds=ROUNDS)
    return Row(what=what, ours=ours_s, theirs="rsync", theirs_value=theirs_s, limit=most * theirs_s)


def _write_files(folder: Path, sizes: Sequence[int]) -> None:
    block = random.Random(1).randbytes(MB)
    folder.mkdir(parents=True)
    for number, size in enumerate(sizes):
        with (folder / f"part-{number:05}.bin").open("wb") as file:
            for remaining in range(size, 0, -MB):
                file.write(block[: min(remaining, MB)])


def _push(lab: SshLab, source: Path, size: int) -> None:
    uploads = [Upload(name=path.name, source=path) for path in sorted(source.iterdir())]
    with Fleet(SshTransport(lab.key), lab.nodes) as fleet:
        sent = push(fleet.link(lab.nodes[0]), parcels(uploads))
    if not 0 < sent <= size:
        raise AssertionError(f"{sent} bytes of {size} were sent")


def _collect(lab: SshLab, run_id: str, target: Path, count: int) -> None:
    with Fleet(SshTransport(lab.key), lab.nodes) as fleet:
        collected = collect(fleet, run_id, (), RunPaths(target), 1 << 30, lambda _event: None)
    if len(collected.outputs) != count:
        raise AssertionError(f"{len(collected.outputs)} of {count} files were collected")


def _write_config(lab: SshLab) -> Path:
    config, hosts = lab.key.with_name("ssh_config"), lab.key.with_name("known_hosts")
    inventory = Inventory(stack="bench", nodes=tuple(lab.nodes))
    config.write_text(ssh_config(inventory, lab.key, hosts))
    hosts.write_text(known_hosts(inventory))
    return config


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
