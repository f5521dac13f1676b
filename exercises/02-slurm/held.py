"""A held GPU: three jobs hold a GPU, one of them does not use it, and another job waits for it.

You will learn    how to find a GPU that is held and not used, and to give it back without ending the wrong job
You will produce  a table of the jobs and the utilisation of their GPUs; how long the next job waits once a GPU is free
Run it            python held.py                         (in the session of gpucourse run 2.2)
Your part         my_release.sh, which this script starts
Reading           modules/02-slurm/lesson.md, "A GPU that is held and not used"
"""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node bench.py is beside this file

import bench
from bench import say

SAMPLES, START_S, PART_S = 8, 60.0, 30.0
PART, JOB = Path(__file__).with_name("my_release.sh"), Path(__file__).with_name("held_job.py")
GUARD = """#!/bin/bash
# scancel for my_release.sh: it records the arguments of each call, and refuses all jobs except those of held.py.
echo "$(date +%s.%N) $*" >> "$HELD_CALLS"
for word in "$@"; do
  case " $HELD_JOBS " in
    *" $word "*) number=$word;;
    *) [[ $word == -* ]] || { echo "scancel: $word is not a job of held.py: refused" >&2; exit 1; };;
  esac
done
[ -n "$number" ] || { echo "scancel: no job number: refused" >&2; exit 1; }
exec "$HELD_SCANCEL" "$@"
"""

session = os.environ.get("SLURM_JOB_ID")
if session is None or shutil.which("sbatch") is None:
    sys.exit("held.py submits jobs: start it in the session that gpucourse run 2.2 opens")
out = Path(os.environ.get("GPUCOURSE_OUT") or ".").resolve()
out.mkdir(parents=True, exist_ok=True)
folder = Path(tempfile.mkdtemp(prefix="held-", dir=out))  # all nodes share it
node = os.environ.get("SLURMD_NODENAME") or bench.node_label()
jobs: dict[str, str] = {}  # the number of each job, by its name


def call_slurm(*words: str) -> str:
    """Return the output of a Slurm command. Raises CalledProcessError if it fails."""
    # The variables of the session would become requests of the new jobs.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_") or name == "SLURM_CONF"}
    return subprocess.run(words, capture_output=True, text=True, check=True, env=environ).stdout.rstrip()


def submit(name: str, command: str, *options: str) -> None:
    """Submit a job that holds the resources in its options until it is cancelled."""
    common = (f"--job-name={name}", "--time=10", f"--output={folder / name}.out", f"--chdir={folder}")
    jobs[name] = call_slurm("sbatch", "--parsable", *common, *options, "--wrap", f"exec {command}")


def look_up(name: str) -> tuple[str, str]:
    """Return the state and the node of a job, as squeue shows them; two empty strings if the job has ended."""
    rows = call_slurm("squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%N").splitlines()
    matches = [row.split("|") for row in rows if row.startswith(f"{jobs[name]}|")]
    return (matches[0][1], matches[0][2]) if matches else ("", "")


def hold_node(name: str, *options: str) -> bool:
    """Submit a job that holds a GPU on a node without another job of this script. Return whether the job runs within 10
    seconds, or within START_S seconds for the first job, `earlier`."""
    used_nodes = [node, *(look_up(other)[1] for other in jobs)]
    try:
        submit(name, write_job(name, *options), "--gres=gpu:1", f"--exclude={','.join(filter(None, used_nodes))}")
    except subprocess.CalledProcessError as error:  # no other node has a GPU
        say(error.stderr.strip())
        return False
    return wait_until_running(name, START_S if name == "earlier" else 10.0)


def follow(earlier: str, name: str) -> bool:
    """Submit a job that gets the GPU of an earlier job when that job has ended. Return whether the new job runs within START_S
    seconds."""
    options = (f"--nodelist={look_up(earlier)[1]}", f"--dependency=afterany:{jobs[earlier]}")
    submit(name, write_job(name), "--gres=gpu:1", *options)
    return wait_until_running(name, START_S)


def start_without_gpu(name: str) -> bool:
    """Submit a job that holds no GPU. Return whether it runs within 10 seconds; a queue for GPUs may refuse it."""
    try:
        submit(name, "sleep 600")
    except subprocess.CalledProcessError as error:
        say(error.stderr.strip())
        return False
    return wait_until_running(name, 10.0)


def count_gpus_to_wait(place: str) -> int:
    """Return how many GPUs a job must request to wait for a node: one more than are free there."""
    line = call_slurm("sinfo", "--noheader", f"--nodes={place}", "--Format=Gres:200,GresUsed:200").splitlines()[0]
    total, used = (sum(map(int, re.findall(r"gpu(?::[A-Za-z][^:,(]*)?:(\d+)", part))) for part in (line[:200], line[200:]))
    return max(1, total - used + 1)


def wait_until_running(name: str, seconds: float) -> bool:
    """Wait up to `seconds` until the job runs. Return whether it runs."""
    deadline = time.monotonic() + seconds
    while (state := look_up(name)[0]) in ("PENDING", "CONFIGURING") and time.monotonic() < deadline:
        time.sleep(0.2)
    return state == "RUNNING"


def write_job(name: str, *options: str) -> str:
    """Return the command of a job that holds a GPU and writes the utilisation of the GPU."""
    return shlex.join([sys.executable, str(JOB), f"--usage={folder / name}.usage", *options])


def read_usage(job: str = "*") -> list[str]:
    """Return the lines that a job wrote about its GPU, or those of all jobs, in the order of their times."""
    lines = [line for file in sorted(folder.glob(f"{job}.usage")) for line in file.read_text(encoding="utf-8").splitlines()]
    return sorted(lines, key=lambda line: line.partition(" ")[0])


def parse_time(line: str) -> float:
    """Return the time of a line of the table in seconds."""
    return time.mktime(time.strptime(line.partition(" ")[0], "%Y-%m-%dT%H:%M:%S"))


def is_written(text: str) -> bool:
    """Return whether a script contains more than comments."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def start_part() -> tuple[list[list[str]], str]:
    """Start my_release.sh with the table. Return its calls of scancel, each with the time, and why it failed, if it did."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "scancel").write_text(GUARD, encoding="utf-8")
    (programs / "scancel").chmod(0o700)
    (calls := folder / "calls").touch()
    environ = {
        **os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "HELD_CALLS": str(calls),
        "HELD_JOBS": " ".join(jobs.values()), "HELD_SCANCEL": shutil.which("scancel") or "",
        "SQUEUE_USERS": getpass.getuser(),  # jobs of other people are on the same nodes, but not in this experiment
    }  # fmt: skip
    command = ["timeout", "--kill-after=2", f"{PART_S:g}", "bash", PART.name, "usage.txt"]
    result = subprocess.run(
        command, cwd=PART.parent, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    words = [line.split() for line in calls.read_text(encoding="utf-8").splitlines()]
    errors = [line for line in result.stderr.splitlines() if line.strip()]
    if result.returncode in (124, 137):
        return words, f"my_release.sh had not ended after {PART_S:g} s"
    return words, errors[-1][:200] if errors and (result.returncode or not words) else ""


# --- the queue: who holds a GPU, and who waits -----------------------------------------------------------------------
metrics: dict[str, object] = {"open": not is_written(PART.read_text(encoding="utf-8"))}
try:
    if not (hold_node("earlier", "--computes", "--ends") and follow("earlier", "notebook")):
        sys.exit("no GPU of another node is free for this experiment: look at squeue, and try again later")
    runs = {"training": hold_node("training", "--computes"), "tokenise": start_without_gpu("tokenise")}
    for name in (name for name, is_running in runs.items() if not is_running):  # on a small cluster
        say(f"there is no room for the job {name}: it is left out")
        if name in jobs:
            call_slurm("scancel", jobs.pop(name))
    subprocess.run(shlex.split(write_job("session", "--ends")), check=True)
    holders = [name for name in ("earlier", "notebook", "training", "session") if name in {*jobs, "session"}]
    deadline = time.monotonic() + START_S
    while len(read_usage()) < SAMPLES * len(holders) and time.monotonic() < deadline:
        time.sleep(0.2)
    jobs_before = {name: look_up(name) for name in jobs}
    place = jobs_before["notebook"][1]
    submit("evaluation", "sleep 600", f"--gres=gpu:{count_gpus_to_wait(place)}", f"--nodelist={place}")
    waits = not wait_until_running("evaluation", 2.0)
    Path(PART.parent / "usage.txt").write_text("\n".join([*read_usage(), ""]), encoding="utf-8")
    say(call_slurm("squeue", "--me"))
    say(f"usage.txt has {len(read_usage())} lines: time, node, utilisation of its GPU in percent")

    # --- my_release.sh releases the GPU; if my_release.sh is not written yet, this script does -----------------------------
    calls, failure = ([], "") if metrics["open"] else start_part()
    cancelled = {word for call in calls for word in call[1:] if not word.startswith("-")}
    by_part = jobs["notebook"] in cancelled
    released_s = float(calls[-1][0]) if by_part else time.time()
    if not by_part:
        call_slurm("scancel", jobs["notebook"])
    started = wait_until_running("evaluation", START_S)
    start_s = max(0.0, time.time() - released_s)
    ends = {name: look_up(name) for name in jobs} | {"session": ("RUNNING", node)}
finally:
    for number in jobs.values():
        subprocess.run(["scancel", number], capture_output=True, check=False)

# --- the record ----------------------------------------------------------------------------------------------------------
numbers, places = {"session": session, **jobs}, {**jobs_before, **ends}
rows = []
for name, number in numbers.items():
    percents = [int(line.split()[2]) for line in read_usage(name)] if name in holders else []
    state_before = jobs_before.get(name, ("", ""))
    by_course = "held.py" if name == "notebook" and not by_part else ""
    rows.append({
        "job": number, "name": name, "node": places[name][1] or state_before[1], "gpus": int(name != "tokenise"),
        "highest_percent": max(percents, default=None), "newest_percent": percents[-1] if percents else None,
        "cancelled_by": "yours" if number in cancelled else by_course, "after": ends[name][0] or "ended",
    })  # fmt: skip
wrong_jobs = sorted(cancelled - {jobs["notebook"]})
titles = {"job": "job", "name": "name", "node": "node", "gpus": "GPUs", "highest_percent": "highest %",
          "newest_percent": "newest %", "cancelled_by": "cancelled by", "after": "afterwards"}  # fmt: skip
bench.say_table(rows, titles)
if started:
    say(f"the job that waited started {start_s:.1f} s after the GPU was given back")
else:
    say("the job that waited has not started")
if metrics["open"]:
    say("my_release.sh is unchanged. Write it, and this script uses it to give the GPU back; the table then says 'yours'")
elif failure:
    say(f"my_release.sh failed: {failure}")
for number in wrong_jobs:
    say(f"my_release.sh cancelled {number}, which should have stayed")
ends_of_labels = {"yours": ", cancelled by your script", "held.py": ", cancelled by held.py"}
labels = {str(row["name"]): f"{row['name']}{ends_of_labels.get(str(row['cancelled_by']), '')}" for row in rows}
begun_s = min((parse_time(line) for line in read_usage()), default=0.0)
metrics |= {
    "usage": [
        {"name": labels[name], "at_s": parse_time(line) - begun_s, "percent": int(line.split()[2])}
        for name in holders for line in read_usage(name)
    ],
    "rows": rows, "waited_for_gpu": int(waits), "start_s": start_s if started else None,
    "given_back": None if metrics["open"] else int(by_part and started),
    "wrong_jobs": None if metrics["open"] else len(wrong_jobs), "failure": failure,
}  # fmt: skip
shutil.rmtree(folder, ignore_errors=True)
path = out / "inference.json"
record = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
path.write_text(json.dumps(record | {"held": metrics}, indent=2) + "\n", encoding="utf-8")
say(f"written: {path}")
