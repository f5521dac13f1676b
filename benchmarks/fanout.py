"""Connect to 64 nodes and run an empty command on each, compared with one node, and with a parallel SSH tool.

The tool is `clush` or `parallel-ssh`, whichever is installed, with every node at once and the same key and host keys. Ours is
measured twice: in a process that runs already (as in the middle of a command), and as a process of its own from its start to
its end, which is what the tool does.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Row, seconds, table
from gpucourse.model.node import Inventory, Node
from gpucourse.remote.fleet import Fleet, values
from gpucourse.remote.keys import known_hosts, ssh_config
from gpucourse.remote.ssh import SshTransport
from gpucourse.workspace.files import write_record
from tests.sshlab import ssh_lab

NODES = 64
ROUNDS = 7
MOST_S = 0.6
PROCESS = """
import sys
from pathlib import Path
from gpucourse.model.node import Inventory
from gpucourse.remote.fleet import Fleet, values
from gpucourse.remote.ssh import SshTransport
from gpucourse.workspace.files import read_record
nodes = read_record(Path(sys.argv[2]), Inventory).nodes
with Fleet(SshTransport(Path(sys.argv[1])), nodes) as fleet:
    assert all(done.ok for done in values(fleet.do_on_each(lambda link: link.run("true"))))
"""


def measure() -> list[Row]:
    """Ours on 64 nodes against ours on one and against the tool."""
    with tempfile.TemporaryDirectory(prefix="gpucourse-bench-") as folder, ssh_lab("simulated", Path(folder), NODES) as lab:
        record, config = lab.key.with_name("nodes.json"), lab.key.with_name("ssh_config")
        inventory = Inventory(stack="bench", nodes=tuple(lab.nodes))
        write_record(record, inventory)
        hosts = lab.key.with_name("known_hosts")
        hosts.write_text(known_hosts(inventory))
        config.write_text(ssh_config(inventory, lab.key, hosts))
        works: dict[str, Callable[[], object]] = {
            "all": lambda: _everywhere(lab.key, lab.nodes),
            "one": lambda: _everywhere(lab.key, lab.nodes[:1]),
            "process": _run([sys.executable, "-c", PROCESS, str(lab.key), str(record)]),
        }
        tool = _tool(config, lab.nodes)
        if tool is not None:
            works["tool"] = _run(tool)
        taken: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(ROUNDS):
            for name, work in works.items():
                taken[name].append(seconds(work))
    took = {name: statistics.median(times) for name, times in taken.items()}
    what = f"connect + empty command on {NODES} nodes"
    rows = [
        Row(
            what=what,
            ours_s=took["all"],
            theirs="on 1 node",
            theirs_s=took["one"],
            promise=f"at most {MOST_S} s",
            held=took["all"] <= MOST_S,
        )
    ]
    if tool is not None:
        rows.append(
            Row(
                what=f"{what}, whole process",
                ours_s=took["process"],
                theirs=tool[0],
                theirs_s=took["tool"],
                promise="faster",
                held=took["process"] < took["tool"],
            )
        )
    return rows


def _everywhere(key: Path, nodes: list[Node]) -> None:
    with Fleet(SshTransport(key), nodes) as fleet:
        for done in values(fleet.do_on_each(lambda link: link.run("true"))):
            if not done.ok:
                raise AssertionError(done)


def _tool(config: Path, nodes: list[Node]) -> list[str] | None:
    names = [node.name for node in nodes]
    if shutil.which("clush"):
        return ["clush", "-S", "-f", str(NODES), "-o", f"-F {config}", "-w", ",".join(names), "true"]
    if shutil.which("parallel-ssh"):
        hosts = [word for name in names for word in ("-H", name)]
        return ["parallel-ssh", "-p", str(NODES), "-x", f"-F {config}", *hosts, "true"]
    return None


def _run(command: list[str]) -> Callable[[], object]:
    return lambda: subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    print(table(measure()))
