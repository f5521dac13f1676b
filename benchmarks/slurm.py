"""`run 2.1` compared with submitting the same file by hand: sbatch on the head, and squeue until the job is gone."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

from benchmarks.lab import Lab, lab
from benchmarks.measure import Row, medians

ROUNDS = 5
RUN = ("run", "2.1", "--set", "seconds=3")


def measure() -> list[Row]:
    """Wall time until the job has ended and its output is here; ours includes the record, tables, picture and checks."""
    with lab() as bench_lab:
        bench_lab.type("deploy", "2")
        plan = json.loads(bench_lab.type(*RUN, "--dry-run", "--json"))["plan"]
        bench_lab.type(*RUN)  # both sides find warm files
        hand, ours = medians(lambda: _by_hand(bench_lab, plan), lambda: bench_lab.type(*RUN), rounds=ROUNDS)
    limit = hand * 1.05 + 0.5
    return [
        Row(
            what="run 2.1",
            ours_s=ours,
            theirs="scp, sbatch, squeue until gone, cat",
            theirs_s=hand,
            promise=f"5% + 0.5 s: {limit:.2f} s",
            held=ours <= limit,
        )
    ]


def _by_hand(bench_lab: Lab, plan: dict) -> None:  # type: ignore[type-arg]
    """Copy the files to the head, submit there, look five times a second, and show the output."""
    config = next((bench_lab.root / ".gpucourse" / "stacks").glob("*/ssh_config"))
    head = plan["commands"][0]["node"]
    file = plan["batch"]["files"][0]
    local = Path(bench_lab.root) / f"{file['name']}.sbatch"
    local.write_text(file["text"], encoding="utf-8")
    ssh = ["ssh", "-F", str(config), head]
    subprocess.run([*ssh, "mkdir -p /shared/by-hand/work /shared/by-hand/logs /shared/by-hand/outputs"], check=True)
    scripts = [upload["source"] for upload in plan["uploads"]]
    subprocess.run(["scp", "-q", "-F", str(config), *scripts, f"{head}:/shared/by-hand/work"], check=True)
    subprocess.run(["scp", "-q", "-F", str(config), str(local), f"{head}:/shared/by-hand/"], check=True)
    wait = 'id=$(sbatch --parsable job.sbatch); while [ -n "$(squeue -h -j "$id")" ]; do sleep 0.2; done; cat logs/"$id"-*.out'
    done = subprocess.run(
        [*ssh, f"cd /shared/by-hand && sh -c {shlex.quote(wait)}"], capture_output=True, text=True, check=True
    )
    if "written: " not in done.stdout:
        raise RuntimeError(f"by hand: the job said {done.stdout!r}")
