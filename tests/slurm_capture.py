"""Record what a release of Slurm really says: `python -m tests.slurm_capture [LAYER]` fills tests/data/slurm/<version>.

As root, with a cluster of its own on simulated machines: the installed Slurm, or one whose packages are unpacked in LAYER. How
those of another release come there is told in tests/data/slurm/README.md. Takes two minutes, most of them Slurm's own patience.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from gpucourse.local import health
from gpucourse.remote.agent import slurm_words as say
from tests.simulated import make_key
from tests.slurm_cluster import Cluster
from tests.waiting import until

DATA = Path(__file__).parent / "data" / "slurm"
JOB = """#!/bin/bash
#SBATCH --job-name=hello
#SBATCH --gres=gpu:1
#SBATCH --time=5
#SBATCH --output=%j-%N.out
echo "here is $(hostname)"
sleep "$1"
exit "${2:-0}"
"""
CLOCK = """#include <time.h>
time_t time(time_t *t) {
  struct timespec now; clock_gettime(CLOCK_REALTIME, &now); now.tv_sec += %d; if (t) *t = now.tv_sec; return now.tv_sec;
}
"""
REFUSED = {
    "sbatch --gres=gpu:2": "sbatch --gres=gpu:2 job.sbatch 1",
    "sbatch -N4": "sbatch -N4 job.sbatch 1",
    "sbatch -p cpu": "sbatch -p cpu job.sbatch 1",
    "sbatch --bogus=1": "sbatch --bogus=1 job.sbatch 1",
    "sbatch --time=xx": "sbatch --time=xx job.sbatch 1",
    "sbatch --dependency=bogus:1": "sbatch --dependency=bogus:1 job.sbatch 1",
    "sbatch --array=9-x": "sbatch --array=9-x job.sbatch 1",
    "no shebang": "echo hello > plain; sbatch plain",
    "squeue -j 99999": "squeue -j 99999",
    "sacct": "sacct",
}


@dataclass
class OldCluster(Cluster):
    """Of releases before 21.08, which know no CgroupPlugin."""

    def files(self) -> dict[str, str]:
        return {**super().files(), "cgroup.conf": ""}


@dataclass
class Recorder:
    """One cluster, what it said, and the numbers of its jobs by what becomes of them."""

    cluster: Cluster
    said: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, str] = field(default_factory=dict)

    def asks(self, name: str, command: str) -> str:
        """Record what a command on the head says, on both of its streams."""
        done = self.cluster.ssh("node0", f"cd /shared/cap && {{ {command}; }} 2>&1")
        self.said[name] = done.stdout.decode(errors="replace")
        return self.said[name]

    def submits(self, role: str, words: str) -> None:
        """Submit a job that stands for `role`."""
        self.jobs[role] = self.cluster.run_on_head(f"cd /shared/cap && sbatch --parsable {words}")
        assert self.jobs[role].isdecimal(), f"{role}: {self.jobs[role]}"

    def queue(self, name: str, *roles: str) -> None:
        """Record the rows of these jobs in the queue."""
        numbers = ",".join(self.jobs[role] for role in roles)
        self.asks(name, f"squeue -h -a -t all -r -j {numbers} -o '{say.QUEUE}'")

    def details(self, name: str, *roles: str) -> None:
        """Record all that Slurm knows of these jobs."""
        self.asks(name, "; ".join(f"scontrol show job -o {self.jobs[role]}" for role in roles))

    def nodes(self, name: str, after: str = "") -> None:
        """Record the nodes, in one breath with a command that changes them."""
        self.asks(name, f"{after} sinfo -h -a -N -o '{say.NODES}'")

    def states(self) -> dict[str, str]:
        """`STATE|reason` of every job now."""
        rows = self.cluster.run_on_head(f"squeue -h -a -t all -j {','.join(self.jobs.values())} -o '%F|%T|%r'").splitlines()
        by_number = {row.split("|")[0]: row.partition("|")[2] for row in rows}
        return {role: by_number.get(number, "") for role, number in self.jobs.items()}

    def waits(self, role: str, state: str) -> None:
        """Wait until the job is `STATE|reason`, as a pattern."""
        until(lambda: bool(re.match(state, self.states()[role])), f"{role} is {state}")


def record(cluster: Cluster) -> Recorder:
    """Bring the cluster into every situation that a reader of ours meets, and record what it says there."""
    recorder = Recorder(cluster)
    for name, text in {"job": JOB, "cpu": JOB.replace("#SBATCH --gres=gpu:1\n", "")}.items():
        cluster.ssh("node0", f"mkdir -p /shared/cap && cat > /shared/cap/{name}.sbatch", stdin=text.encode())
    recorder.asks("version.txt", "sinfo --version")
    for act in ACTS:
        began = time.monotonic()
        act(recorder)
        print(f"{time.monotonic() - began:5.0f} s {act.__name__.strip('_')}", flush=True)  # noqa: T201 (a tool for developers)
    return recorder


def _a_queue(recorder: Recorder) -> None:
    recorder.submits("over its time", "--time=1 -w node3 cpu.sbatch 600")
    recorder.submits("well", "job.sbatch 12")
    recorder.submits("fails", "job.sbatch 12 3")
    recorder.submits("cancelled", "job.sbatch 60")
    recorder.submits("next", "job.sbatch 1")
    recorder.submits("array", "--array=0-3%2 job.sbatch 2")
    recorder.submits("after", f"--dependency=afterany:{recorder.jobs['array']} job.sbatch 1")
    stands = dict.fromkeys(("well", "fails", "cancelled"), "RUNNING|None")
    stands |= {"next": "PENDING|Resources", "array": "PENDING|Priority", "after": "PENDING|Dependency"}
    until(lambda: stands.items() <= recorder.states().items(), "the queue stands")
    recorder.queue("squeue-waiting.txt", *stands)
    recorder.nodes("sinfo-busy.txt")
    recorder.asks("scontrol-d-running.txt", f"scontrol -d show job -o {recorder.jobs['cancelled']}")
    recorder.details("scontrol-array-pending.txt", "array")
    recorder.cluster.run_on_head(f"scancel {recorder.jobs['cancelled']}")
    for role in stands:
        recorder.waits(role, "COMPLETED|FAILED|CANCELLED")
    until(lambda: len(recorder.cluster.run_on_head("squeue -h -o %i").splitlines()) == 1, "none is left")
    recorder.queue("squeue-ended.txt", *stands)
    recorder.details("scontrol-ended.txt", *stands)
    recorder.asks("scontrol-d-ended.txt", f"scontrol -d show job -o {recorder.jobs['cancelled']}")


def _capture_held_jobs(recorder: Recorder) -> None:
    """By whoever submits it, by whoever requeues it, and by Slurm, since a node cannot start it."""
    recorder.submits("held", "--hold job.sbatch 1")
    recorder.submits("requeued and held", "-w node2 job.sbatch 60")
    recorder.waits("requeued and held", "RUNNING")
    recorder.cluster.run_on_head(f"scontrol requeuehold {recorder.jobs['requeued and held']}")
    spool, away = "/var/lib/slurm/slurmd", "/var/lib/slurm/away"
    recorder.cluster.inside("node1", "sh", "-c", f"mv {spool} {away}; touch {spool}")
    recorder.submits("launch failed", "-w node1 job.sbatch 1")
    held = ("held", "requeued and held", "launch failed")
    for role in held:
        recorder.waits(role, "PENDING.*[Hh]eld")
    recorder.queue("squeue-held.txt", *held)
    recorder.cluster.inside("node1", "sh", "-c", f"rm {spool}; mv {away} {spool}")
    recorder.cluster.run_on_head(f"scancel {' '.join(recorder.jobs[role] for role in held)}")
    recorder.cluster.up("node1")


def _refusals(recorder: Recorder) -> None:
    told = [f"## {name}\n{recorder.asks('refusals.txt', command)}" for name, command in REFUSED.items()]
    recorder.said["refusals.txt"] = "".join(text if text.endswith("\n") else f"{text}\n" for text in told)


def _steps(recorder: Recorder) -> None:
    recorder.asks("srun-exit.txt", "srun -N3 bash -c '[ $SLURM_PROCID != 1 ] || exit 7'")
    recorder.asks("srun-killed.txt", "srun -N3 --kill-on-bad-exit=1 bash -c '[ $SLURM_PROCID = 2 ] && kill -SEGV $$; sleep 60'")


def _a_node_down(recorder: Recorder) -> None:
    recorder.submits("requeued", "-w node2 job.sbatch 60")
    recorder.submits("lost", "--no-requeue -w node2 cpu.sbatch 60")
    for role in ("requeued", "lost"):
        recorder.waits(role, "RUNNING")
    recorder.cluster.inside("node2", "pkill", "-KILL", "-x", "slurmd")
    change = "scontrol update nodename=node2 state=down reason='Not responding'; "
    change += "scontrol update nodename=node3 state=drain reason='bad fan';"
    recorder.nodes("sinfo-down.txt", change)  # newer releases take node2 back at once, whether its slurmd lives or not
    recorder.waits("requeued", "PENDING.BeginTime")
    recorder.queue("squeue-node-down.txt", "requeued", "lost")
    recorder.details("scontrol-node-down.txt", "requeued", "lost")
    recorder.cluster.run_on_head(f"scancel {recorder.jobs['requeued']}")
    for name in ("node2", "node3"):
        recorder.cluster.up(name)


def _daemons_down(recorder: Recorder) -> None:
    cluster = recorder.cluster
    cluster.inside("node0", "pkill", "-TERM", "-x", "slurmctld")
    until(lambda: cluster.inside("node0", "pgrep", "-x", "slurmctld")["code"] != 0, "slurmctld has ended")
    recorder.asks("squeue-controller-down.txt", "squeue")
    cluster.up("node0")
    until(lambda: "node1" in cluster.run_on_head("sinfo -h -N -o %N"), "slurmctld answers")
    cluster.inside("node0", "pkill", "-TERM", "-x", "munged")
    recorder.asks("squeue-munge-down.txt", "squeue")
    cluster.up("node0")


def _other_keys_and_clocks(recorder: Recorder) -> None:
    """What slurmd writes about a head whose munge has another key, or whose clock is not its own."""
    cluster = recorder.cluster
    for seconds in (600, -600):
        cluster.ssh("node0", f"cc -shared -fPIC -x c -o /shared/cap/off{seconds}.so -", stdin=(CLOCK % seconds).encode())
    for node, name, change, variable in (
        ("node1", "another-key", "head -c 512 /dev/urandom > /etc/munge/munge.key;", ""),
        ("node2", "clock-ahead", "", "LD_PRELOAD=/shared/cap/off600.so"),
        ("node3", "clock-behind", "", "LD_PRELOAD=/shared/cap/off-600.so"),
    ):
        ended = "pkill -KILL -x munged; while pgrep -x munged; do :; done"
        again = f"{variable} setpriv --reuid munge --regid munge --clear-groups munged --force"
        cluster.inside(node, "sh", "-c", f"{change} {ended}; {again}; wc -c < /var/log/slurm/slurmd.log > /run/before")
        recorder.asks(f"srun-{name}.txt", f"timeout -k 1 5 srun -w {node} true")
        said = cluster.inside(node, "sh", "-c", "tail -c +$(($(cat /run/before) + 1)) /var/log/slurm/slurmd.log")
        recorder.said[f"slurmd-{name}.log"] = str(said["output"])
        cluster.up(node)


def _a_time_limit(recorder: Recorder) -> None:
    recorder.waits("over its time", "TIMEOUT")
    recorder.queue("squeue-timeout.txt", "over its time")
    recorder.details("scontrol-timeout.txt", "over its time")


def _no_power(recorder: Recorder) -> None:
    recorder.cluster.power("node1", "off")
    listed = "sinfo -h -N -o '%N|%T'"
    until(lambda: "node1|down*" in recorder.cluster.run_on_head(listed), "it counts as down")
    recorder.nodes("sinfo-no-power.txt")


def neutral(text: str) -> str:
    """Without the names and numbers of whoever recorded it."""
    text = re.sub(r"\b(UserId|GroupId)=\w+\(\d+\)", r"\1=me(1000)", text)
    text = re.sub(r"AllocNode:Sid=(\S+?):\d+", r"AllocNode:Sid=\1:4174", text)
    return text.replace("/shared/cap", "/home/me/cap").replace("UID 0", "UID 1000").replace("uid=0", "uid=1000")


ACTS = (
    _a_queue,
    _capture_held_jobs,
    _refusals,
    _steps,
    _a_node_down,
    _daemons_down,
    _a_time_limit,
    _other_keys_and_clocks,
    _no_power,
)


def main(layer: str = "") -> None:
    """Record, and write the files of this release."""
    with tempfile.TemporaryDirectory(prefix="gpucourse-record-") as folder:
        kind = OldCluster if layer and Path(layer).name < "21" else Cluster
        key = make_key(Path(folder) / "id")
        lab = kind(folder=Path(folder) / "nodes", key=key, uid=f"record-{os.getpid()}", workers=3, layer=layer)
        for plugins in Path(layer).glob("usr/lib/*/slurm-wlm") if layer else ():
            os.setxattr(plugins, "trusted.overlay.opaque", b"y")  # the installed release's plugins are not this one's
        try:
            for name in lab.names:
                lab.up(name)
            until(lab.idle, "idle")
            recorder = record(lab)
        finally:
            health.end_everything(lab.folder, lab.uid)
    place = DATA / recorder.said["version.txt"].split()[-1]
    place.mkdir(exist_ok=True)
    for name, text in recorder.said.items():
        (place / name).write_text(neutral(text), encoding="utf-8")
    (place / "jobs.json").write_text(json.dumps(recorder.jobs, indent=1) + "\n", encoding="utf-8")
    print(f"{len(recorder.said)} files in {place}")  # noqa: T201 (a tool for developers)


if __name__ == "__main__":
    main(*sys.argv[1:])
