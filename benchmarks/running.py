"""`run 3.2 --nodes 2` compared with the same torchrun commands typed by hand over plain ssh, on the same two nodes."""

from __future__ import annotations

import json
import shlex
import subprocess
from functools import partial

from benchmarks.lab import Lab, lab
from benchmarks.measure import Row, medians, seconds
from gpucourse.launch.torchrun import format_typed

ROUNDS = 12
RUN = ("run", "3.2", "--nodes", "2")
MAX_MORE_S = 0.7


def measure() -> list[Row]:
    """Return the time until both ranks have ended; ours includes the start, push, logs, outputs, plot and checks."""
    with lab() as bench_lab:
        bench_lab.type("deploy", "3")
        plan = json.loads(bench_lab.type(*RUN, "--dry-run", "--json"))
        bench_lab.type(*RUN)  # so that both sides read files from the page cache
        hand_s, ours_s = medians(
            partial(seconds, partial(_run_by_hand, bench_lab, plan)),
            lambda: bench_lab.measure(*RUN).wall_s,
            rounds=ROUNDS,
        )
    limit = hand_s + MAX_MORE_S
    return [Row(what="run 3.2 --nodes 2", ours=ours_s, theirs="ssh + torchrun by hand", theirs_value=hand_s, limit=limit)]


def _run_by_hand(bench_lab: Lab, plan: dict) -> None:  # type: ignore[type-arg]
    """Copy the script to each node and start torchrun there, as any course would teach it."""
    config = next((bench_lab.root / ".gpucourse" / "stacks").glob("*/ssh_config"))
    scripts = [upload["source"] for upload in plan["plan"]["uploads"]]
    started = []
    for command in plan["plan"]["commands"]:
        node = command["node"]
        subprocess.run(["scp", "-q", "-F", str(config), *scripts, f"{node}:"], check=True)
    for command in plan["plan"]["commands"]:
        words = format_typed(command["argv"])
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in command["env"].items())
        line = f"{settings} {shlex.join(words)}"
        started.append(subprocess.Popen(["ssh", "-F", str(config), command["node"], line], stdout=subprocess.DEVNULL))
    for process in started:
        if process.wait():
            raise RuntimeError(f"by hand: ssh ended with {process.returncode}")
