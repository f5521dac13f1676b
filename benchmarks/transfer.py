"""Files to a node, one of 200 MB, 500 small ones, compared with `scp` and `rsync` with the same cipher; to both kinds of node.

Ours counts from the connection to the last byte in the node's store, as theirs do from their start to their end. Every round
begins with an empty target.
"""

from __future__ import annotations

import random
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.measure import Row, attempt, seconds, table
from gpucourse.model.node import Inventory
from gpucourse.model.plan import Upload
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.keys import known_hosts, ssh_config
from gpucourse.remote.push import parcels, push
from gpucourse.remote.ssh import SshTransport
from tests.sshlab import KINDS, SshLab, ssh_lab

CIPHER = "aes128-gcm@openssh.com"
ROUNDS = 5


def measure() -> Iterator[Row]:
    """Ours against each tool that is installed, for each kind of node that this machine can stand up."""
    with tempfile.TemporaryDirectory(prefix="gpucourse-bench-") as folder:
        big, small = _sources(Path(folder))
        for kind in KINDS:
            if kind == "openssh" and shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin") is None:
                continue
            sources = {"200 MB in one file": big, "500 small files": small}
            yield from attempt(f"push, {kind} node", partial(_to, kind, Path(folder) / kind, sources))


def _to(kind: str, folder: Path, sources: Mapping[str, Path]) -> Iterator[Row]:
    with ssh_lab(kind, folder, 1) as lab:
        for what, source in sources.items():
            yield from attempt(f"push {what}, {kind} node", partial(_against, what, lab, source))


def _sources(folder: Path) -> tuple[Path, Path]:
    chance = random.Random(1)
    big, small = folder / "big", folder / "small"
    big.mkdir()
    block = chance.randbytes(1_000_000)
    with (big / "data").open("wb") as file:
        for number in range(200):
            file.write(block[number * 4999 % 1_000_000 :] + block[: number * 4999 % 1_000_000])
    small.mkdir()
    for number in range(500):
        (small / f"file-{number:03d}.py").write_bytes(chance.randbytes(chance.randrange(200, 4200)))
    return big, small


def _against(what: str, lab: SshLab, source: Path) -> list[Row]:
    config = lab.key.with_name("ssh_config")
    hosts = lab.key.with_name("known_hosts")
    inventory = Inventory(stack="bench", nodes=tuple(lab.nodes))
    config.write_text(ssh_config(inventory, lab.key, hosts))
    hosts.write_text(known_hosts(inventory))
    home = lab.homes["node0"]
    works = {"ours": lambda: _push(lab, source)} | _tools(config, source, home / "target")
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            shutil.rmtree(home / ".gpucourse" / "store", ignore_errors=True)
            shutil.rmtree(home / "target", ignore_errors=True)
            taken[name].append(seconds(work))
            if name != "ours" and _bytes(home / "target") != _bytes(source):
                raise AssertionError(f"{name} did not bring everything")
    medians = {name: statistics.median(times) for name, times in taken.items()}
    return [
        Row(
            what=f"push {what}, {lab.kind} node",
            ours_s=medians["ours"],
            theirs=name,
            theirs_s=theirs,
            promise="faster",
            held=medians["ours"] < theirs,
        )
        for name, theirs in medians.items()
        if name != "ours"
    ]


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _push(lab: SshLab, source: Path) -> None:
    uploads = [Upload(name=path.name, source=path) for path in sorted(source.iterdir())]
    with Fleet(SshTransport(lab.key), lab.nodes) as fleet:
        link = fleet.link(lab.nodes[0])
        sent = push(link, parcels(uploads))
        if sent != sum(upload.source.stat().st_size for upload in uploads):
            raise AssertionError(f"{sent} bytes travelled")


def _tools(config: Path, source: Path, target: Path) -> dict[str, Callable[[], object]]:
    ssh = ["ssh", "-F", str(config), "-c", CIPHER]
    tools: dict[str, list[str]] = {
        "scp": ["scp", "-q", "-r", "-F", str(config), "-c", CIPHER, str(source), f"node0:{target}"],
        "rsync": ["rsync", "-a", "-W", "-e", " ".join(ssh), f"{source}/", f"node0:{target}"],
    }
    return {name: _run(command) for name, command in tools.items() if shutil.which(name)}


def _run(command: list[str]) -> Callable[[], object]:
    return lambda: subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    print(table(list(measure())))
