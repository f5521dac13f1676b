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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gpucourse.local import health
from gpucourse.remote.agent import slurm_words as say
from tests.simulated import make_key
from tests.slurm_cluster import Cluster

DATA = Path(__file__).parent / "data" / "slurm"
PATIENCE_S = 120.0
JOB = """#!/bin/bash
#SBATCH --job-name=hello
#SBATCH --gres=gpu:1
#SBATCH --time=5
#SBATCH --output=%j-%N.out
echo "here is $(hostname)"
sleep "$1"
exit "${2:-0}"
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
        self.jobs[role] = self.cluster.said(f"cd /shared/cap && sbatch --parsable {words}")
        assert self.jobs[role].isdecimal(), f"{role}: {self.jobs[role]}"

    def states(self, *roles: str) -> dict[str, str]:
        """`STATE|reason` of these jobs now."""
        numbers = ",".join(self.jobs[role] for role in roles or self.jobs)
        rows = self.cluster.said(f"squeue -h -a -t all -j {numbers} -o '%F|%T|%r'").splitlines()
        by_number = {row.split("|")[0]: row.partition("|")[2] for row in rows}
        return {role: by_number.get(number, "") for role, number in self.jobs.items()}

    def release(self) -> str:
        """The version, as Slurm says it."""
        return self.asks("version.txt", "sinfo --version").split()[-1]


def record(cluster: Cluster) -> Recorder:
    """Bring the cluster into every situation that a reader of ours meets, and record what it says there."""
    recorder = Recorder(cluster)
    for name, text in {"job": JOB, "cpu": JOB.replace("#SBATCH --gres=gpu:1\n", "")}.items():
        cluster.ssh("node0", f"mkdir -p /shared/cap && cat > /shared/cap/{name}.sbatch", stdin=text.encode())
    recorder.release()
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
    reasons = {"next": "PENDING|Resources", "array": "PENDING|Priority", "after": "PENDING|Dependency"}
    running = dict.fromkeys(("well", "fails", "cancelled"), "RUNNING|None")
    _until("the queue stands", lambda: (reasons | running).items() <= recorder.states().items())
    queue = ",".join(number for role, number in recorder.jobs.items() if role != "over its time")
    recorder.asks("squeue-waiting.txt", f"squeue -h -a -t all -r -j {queue} -o '{say.QUEUE}'")
    recorder.asks("sinfo-busy.txt", f"sinfo -h -a -N -o '{say.NODES}'")
    recorder.asks("scontrol-d-running.txt", f"scontrol -d show job -o {recorder.jobs['cancelled']}")
    recorder.asks("scontrol-array-pending.txt", f"scontrol show job -o {recorder.jobs['array']}")
    recorder.cluster.said(f"scancel {recorder.jobs['cancelled']}")
    _until("the queue is done", lambda: recorder.cluster.said(f"squeue -h -j {queue} -o %i") == "")
    recorder.asks("squeue-ended.txt", f"squeue -h -a -t all -r -j {queue} -o '{say.QUEUE}'")
    recorder.asks("scontrol-ended.txt", f"for job in {queue.replace(',', ' ')}; do scontrol show job -o $job; done")
    recorder.asks("scontrol-d-ended.txt", f"scontrol -d show job -o {recorder.jobs['cancelled']}")


def _held(recorder: Recorder) -> None:
    """By whoever submits it, by whoever requeues it, and by Slurm, since a node cannot start it."""
    recorder.submits("held", "--hold job.sbatch 1")
    recorder.submits("requeued and held", "-w node2 job.sbatch 60")
    _until("it runs", lambda: recorder.states()["requeued and held"].startswith("RUNNING"))
    recorder.cluster.said(f"scontrol requeuehold {recorder.jobs['requeued and held']}")
    spool, away = "/var/lib/slurm/slurmd", "/var/lib/slurm/away"
    recorder.cluster.inside("node1", "sh", "-c", f"mv {spool} {away}; touch {spool}")
    recorder.submits("launch failed", "-w node1 job.sbatch 1")
    for role in ("requeued and held", "launch failed"):
        _until("it is held", lambda role=role: "held" in recorder.states()[role].lower())  # type: ignore[misc]
    held = ",".join(recorder.jobs[role] for role in ("held", "requeued and held", "launch failed"))
    recorder.asks("squeue-held.txt", f"squeue -h -a -t all -r -j {held} -o '{say.QUEUE}'")
    recorder.cluster.inside("node1", "sh", "-c", f"rm {spool}; mv {away} {spool}")
    recorder.cluster.said(f"scancel {held.replace(',', ' ')}")
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
    _until("both run", lambda: recorder.states("requeued", "lost").get("lost", "").startswith("RUNNING"))
    _until("both run", lambda: recorder.states("requeued", "lost").get("requeued", "").startswith("RUNNING"))
    recorder.cluster.inside("node2", "pkill", "-KILL", "-x", "slurmd")
    # In one breath: newer releases take a node back that somebody calls down, whether its slurmd lives or not.
    said = "scontrol update nodename=node2 state=down reason='Not responding'; "
    said += "scontrol update nodename=node3 state=drain reason='bad fan'; "
    recorder.asks("sinfo-down.txt", f"{said} sinfo -h -a -N -o '{say.NODES}'")
    _until("it waits", lambda: recorder.states("requeued")["requeued"] == "PENDING|BeginTime")
    both = f"{recorder.jobs['requeued']},{recorder.jobs['lost']}"
    recorder.asks("squeue-node-down.txt", f"squeue -h -a -t all -r -j {both} -o '{say.QUEUE}'")
    recorder.asks("scontrol-node-down.txt", f"for job in {both.replace(',', ' ')}; do scontrol show job -o $job; done")
    recorder.cluster.said(f"scancel {recorder.jobs['requeued']}")
    for name in ("node2", "node3"):
        recorder.cluster.up(name)


def _daemons_down(recorder: Recorder) -> None:
    cluster = recorder.cluster
    cluster.inside("node0", "pkill", "-TERM", "-x", "slurmctld")
    _until("slurmctld has ended", lambda: cluster.inside("node0", "pgrep", "-x", "slurmctld")["code"] != 0)
    recorder.asks("squeue-controller-down.txt", "squeue")
    cluster.up("node0")
    _until("slurmctld answers", lambda: "node1" in cluster.said("sinfo -h -N -o %N"))
    cluster.inside("node0", "pkill", "-TERM", "-x", "munged")
    recorder.asks("squeue-munge-down.txt", "squeue")
    cluster.up("node0")


def _other_keys_and_clocks(recorder: Recorder) -> None:
    """What slurmd writes about a head whose munge has another key, or whose clock is behind."""
    ahead = "#include <time.h>\ntime_t time(time_t *t) { struct timespec s; clock_gettime(CLOCK_REALTIME, &s);"
    ahead += " s.tv_sec += %d; if (t) *t = s.tv_sec; return s.tv_sec; }\n"
    for node, name, change in (
        ("node1", "another-key", "head -c 512 /dev/urandom > /etc/munge/munge.key"),
        ("node2", "clock-ahead", "LD_PRELOAD=/shared/cap/ahead600.so"),
        ("node3", "clock-behind", "LD_PRELOAD=/shared/cap/ahead-600.so"),
    ):
        variable = change if change.startswith("LD_") else ""
        if variable and not recorder.cluster.said("command -v cc"):
            continue
        for seconds in (600, -600):
            source = f"cc -shared -fPIC -x c -o /shared/cap/ahead{seconds}.so -"
            recorder.cluster.ssh("node0", source, stdin=(ahead % seconds).encode())
        ended = "pkill -KILL -x munged; while pgrep -x munged; do :; done"
        again = f"{variable} setpriv --reuid munge --regid munge --clear-groups munged --force"
        recorder.cluster.inside(node, "sh", "-c", f"{'' if variable else change + ';'} {ended}; {again}")
        recorder.cluster.inside(node, "sh", "-c", "wc -c < /var/log/slurm/slurmd.log > /run/before")
        recorder.asks(f"srun-{name}.txt", f"timeout -k 1 5 srun -w {node} true")
        ours = recorder.cluster.inside(node, "sh", "-c", "tail -c +$(($(cat /run/before) + 1)) /var/log/slurm/slurmd.log")
        recorder.said[f"slurmd-{name}.log"] = str(ours["output"])
        recorder.cluster.up(node)


def _a_time_limit(recorder: Recorder) -> None:
    number = recorder.jobs["over its time"]
    _until("its time is over", lambda: recorder.states("over its time")["over its time"].startswith("TIMEOUT"))
    recorder.asks("squeue-timeout.txt", f"squeue -h -a -t all -r -j {number} -o '{say.QUEUE}'")
    recorder.asks("scontrol-timeout.txt", f"scontrol show job -o {number}")


def _no_power(recorder: Recorder) -> None:
    recorder.cluster.power("node1", "off")
    _until("it counts as down", lambda: "node1|down*" in recorder.cluster.said("sinfo -h -N -o '%N|%T'"))
    recorder.asks("sinfo-no-power.txt", f"sinfo -h -a -N -o '{say.NODES}'")


def _until(what: str, true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {PATIENCE_S:.0f} s")
        time.sleep(0.1)


def neutral(text: str) -> str:
    """Without the names and numbers of whoever recorded it."""
    text = re.sub(r"\b(UserId|GroupId)=\w+\(\d+\)", r"\1=me(1000)", text)
    text = re.sub(r"AllocNode:Sid=(\S+?):\d+", r"AllocNode:Sid=\1:4174", text)
    return text.replace("/shared/cap", "/home/me/cap").replace("UID 0", "UID 1000").replace("uid=0", "uid=1000")


ACTS = (_a_queue, _held, _refusals, _steps, _a_node_down, _daemons_down, _a_time_limit, _other_keys_and_clocks, _no_power)


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
            _until("idle", lab.idle)
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
