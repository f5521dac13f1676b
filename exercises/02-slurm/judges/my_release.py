"""Judge my_release.sh of 2.2 by the jobs that it cancels, with recorded queues and tables of utilisation."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gpucourse.judge import Case, Part, Way
from gpucourse.judge.batch import Place, execute, is_written
from gpucourse.judge.verdict import Verdict

LIMIT_PERCENT, MIN_LINES, BEGIN_S = 5, 4, 30

WAYS = {
    "own-session": Way(
        "you cancelled your own session. Its GPU is unused as well while you think, but it is the one that you are working "
        "on: $SLURM_JOB_ID is its number",
        ('$job != "$SLURM_JOB_ID" && ', ""),
    ),
    "lines-of-another": Way(
        "you kept a job that has not used its GPU: the busy lines of its GPU are older than the job, and belong to the job "
        "before it. %S of squeue shows when a job started",
        (" && $1 >= start", ""),
    ),
    "too-young": Way(
        "you cancelled a job that has only begun: fewer than 4 lines are its own, and it may still be loading its data",
        ("lines >= 4 && !used", "!used"),
    ),
    "newest-line": Way(
        "you judged each GPU by its newest line. A training run pauses while it waits for samples or saves a checkpoint: a GPU "
        "is unused only if all lines of its job are below 5",
        ("if ($3 >= 5) used = 1", "used = $3 >= 5"),
    ),
    "mean": Way(
        "you judged each GPU by the mean of its lines. A GPU that computes for a short time has a small mean and is in use: it "
        "is unused only if all lines of its job are below 5",
        ("if ($3 >= 5) used = 1", "sum += $3; used = sum / lines >= 5"),
    ),
    "no-gpu": Way(
        "you cancelled a job that holds no GPU: it only runs on the same node as one that does. %b of squeue shows the GPUs "
        "of a job",
        (" && $gpus == *gpu*", ""),
    ),
    "part-of-a-name": Way(
        "you read the lines of another node as well: node1 is also found in node10. Compare whole names",
        ("$2 == node", "index($2, node)"),
    ),
    "first-only": Way(
        "you cancelled only the first job that holds an unused GPU. There may be several",
        ('scancel "$job"', 'scancel "$job"; break'),
    ),
    "used-as-well": Way(
        "you cancelled every job that holds a GPU, whether it uses the GPU or not: hours of training are lost",
        ("lines >= 4 && !used", "1"),
    ),
}


@dataclass(frozen=True)
class Job:
    """A job in a recorded queue. A job that waits has no node. `begin` is the position of its first line in the table."""

    number: str
    node: str
    gpus: int = 1
    name: str = "train"
    begin: int = 0

    @property
    def start(self) -> str:
        """Return the time at which the job began, as squeue shows it: before the table, or just before its first line."""
        if not self.node:
            return "N/A"
        return f"2026-11-30T14:07:{BEGIN_S + 2 * self.begin - 1}" if self.begin else "2026-11-30T09:58:12"


@dataclass(frozen=True)
class Cluster:
    """A recorded queue with the utilisation of each node's GPU in percent, from the oldest sample to the newest."""

    session: str
    jobs: tuple[Job, ...]
    samples: dict[str, tuple[int, ...]]

    def table(self) -> str:
        """Return the file that the learner's script reads."""
        lines = [
            f"2026-11-30T14:07:{BEGIN_S + 2 * place} {node} {percents[place]}\n"
            for place in range(8)
            for node, percents in reversed(self.samples.items())
        ]
        return "".join(lines)

    def is_unused(
        self, job: Job, limit_of: str = "highest", *, older: bool = False, young: bool = False, inside: bool = False
    ) -> bool:
        """Return whether a job has not used its GPU, by the right rule or with one mistake."""
        reduce = {
            "highest": max,
            "newest": lambda percents: percents[-1],
            "mean": lambda percents: sum(percents) / len(percents),
        }
        places = [node for node in self.samples if node == job.node or (inside and job.node in node)]
        lines = [percent for node in places for percent in self.samples[node][0 if older else job.begin :]]
        return (young or len(lines) >= MIN_LINES) and reduce[limit_of](lines) < LIMIT_PERCENT

    def list_jobs(
        self, is_unused: Callable[[Job], bool] | None = None, *, session: bool = False, no_gpu: bool = False
    ) -> list[str]:
        """Return the numbers of the jobs to cancel, by the right rule or with one mistake."""
        return [
            job.number
            for job in self.jobs
            if job.node
            and (job.number != self.session or session)
            and (job.gpus or no_gpu)
            and (is_unused or self.is_unused)(job)
        ]


BUSY, IDLE = (97, 99, 96, 98, 99, 97, 98, 99), (0, 1, 0, 0, 0, 0, 1, 0)
PAUSES, SELDOM = (97, 99, 96, 98, 99, 0, 0, 0), (0, 0, 0, 31, 0, 0, 0, 0)
BEFORE, LOADING = (97, 99, 96, 0, 0, 1, 0, 0), (0, 0, 1, 0, 0, 0, 0, 0)
CLUSTERS = {
    "three nodes": Cluster(
        "4711",
        (Job("4711", "node1", name="bash"), Job("4712", "node2", name="notebook"), Job("4713", "node3"),
         Job("4714", "node2", 0, "tokenise"), Job("4715", "")),
        {"node1": IDLE, "node2": IDLE, "node3": PAUSES},
    ),
    "a job that came after another": Cluster(
        "6101",
        (Job("6101", "node1", name="bash"), Job("6107", "node2", name="notebook", begin=3), Job("6103", "node3")),
        {"node1": IDLE, "node2": BEFORE, "node3": BUSY},
    ),
    "a job that has just begun": Cluster(
        "6201",
        (Job("6201", "node1", name="bash"), Job("6209", "node2", begin=6), Job("6203", "node3", begin=2)),
        {"node1": IDLE, "node2": LOADING, "node3": SELDOM},
    ),
    "eleven nodes, two unused GPUs": Cluster(
        "8020",
        (Job("8011", "node1"), Job("8012", "node10"), Job("8013", "node2", 0), Job("8014", "node2"), Job("8015", "node11"),
         Job("8020", "node3", name="bash"), Job("8021", "")),
        {"node1": IDLE, "node10": BUSY, "node2": IDLE, "node11": SELDOM, "node3": IDLE},
    ),
    "all GPUs in use": Cluster(
        "5001",
        (Job("5001", "node1", name="bash"), Job("5002", "node2"), Job("5003", "node3"), Job("5004", "")),
        {"node1": BUSY, "node2": PAUSES, "node3": SELDOM},
    ),
}  # fmt: skip

_ROWS = r"""#!/bin/bash
cancelled=" $(tr '\0' ' ' < "$NOTES" 2> /dev/null) "
rows() {
  while IFS='|' read -r id node gpus name state long start; do
    [[ $cancelled == *" $id "* ]] || printf '%s\n' "$id|$node|$gpus|$name|$state|$long|$start"
  done << 'END'
@JOBS@
END
}
"""

_SQUEUE = (
    _ROWS
    + r"""
header=1 format='%i %P %j %u %t %M %D %R' states= nodes= jobs=
declare -A letters=([jobid]=i [nodelist]=N [tres-per-node]=b [gres]=b [statecompact]=t [state]=T [name]=j [username]=u
  [reasonlist]=R [starttime]=S [numcpus]=C [partition]=P)
while (($#)); do
  case "$1" in
    -h|--noheader) header=; shift; continue;;
    -a|--all|-r|--array|--me) shift; continue;;
    -[har]?*) set -- "${1:0:2}" "-${1:2}" "${@:2}"; continue;;
    --*=*) option=${1%%=*} value=${1#*=}; shift;;
    -?|--*) option=$1 value=${2-}; shift; (($#)) && shift;;
    *) option=${1:0:2} value=${1:2}; shift;;
  esac
  case "$option" in
    -o|--format) format=$value;;
    -O|--Format) format=
      for field in ${value//,/ }; do field=${field%%:*}; format+="%${letters[${field,,}]-?} "; done;;
    -t|--states) states=",${value^^},";;
    -w|--nodelist) nodes=",$value,";;
    -j|--jobs) jobs=",$value,";;
    -p|--partition|-u|--user|-S|--sort) ;;
    *) echo "squeue: the judge does not support $option; use --format, --states, --nodelist, --jobs or --noheader" >&2; exit 1;;
  esac
done
fill() {
  line=$format
  while [[ $line =~ %[.0-9-]*([A-Za-z?]) ]]; do
    case "${BASH_REMATCH[1]}" in
      i|A) value=$1;; N|B) value=$2;; b) value=$3;; j) value=$4;; t) value=$5;; T) value=$6;; C|D) value=1;; P) value=gpu;;
      u) value=you;; R) value=${2:-(Resources)};; M) value=12:30;; S|V) value=$7;; l|L) value=30:00;;
      *) echo "squeue: the judge does not support ${BASH_REMATCH[0]}" >&2; exit 1;;
    esac
    line=${line/"${BASH_REMATCH[0]}"/"$value"}
  done
  printf '%s\n' "$line"
}
[ -z "$header" ] || fill JOBID NODELIST TRES_PER_NODE NAME ST STATE START_TIME
rows | while IFS='|' read -r id node gpus name state long start; do
  [[ -z $states || $states == *",$state,"* || $states == *",$long,"* || $states == ,ALL, ]] || continue
  [[ -z $nodes || $nodes == *",$node,"* ]] || continue
  [[ -z $jobs || $jobs == *",$id,"* ]] || continue
  fill "$id" "$node" "$gpus" "$name" "$state" "$long" "$start"
done
"""
)

_SCONTROL = (
    _ROWS
    + r"""
wanted= between=$'\n   ' end=$'\n'
for word in "$@"; do
  case "$word" in
    -o|--oneliner) between=' ' end=;;
    [0-9]*) wanted=$word;;
  esac
done
rows | while IFS='|' read -r id node gpus name state long start; do
  [[ -z $wanted || $wanted == "$id" ]] || continue
  tres=; [ "$gpus" = N/A ] || tres="${between}TresPerNode=$gpus"
  since="StartTime=$start EndTime=Unknown"
  place="Partition=gpu${between}NodeList=${node:-(null)}"
  printf '%s\n' "JobId=$id JobName=$name${between}JobState=$long${between}$since $place$tres$end"
done
"""
)


def judge(part: Part) -> None:
    """Judge which jobs are cancelled on each recorded cluster."""
    if not is_written(part.text):
        raise Verdict("open", sentence="no command yet: which job holds the unused GPU?")
    cases = []
    for name, cluster in CLUSTERS.items():
        right = cluster.list_jobs()
        mistakes = {
            "own-session": cluster.list_jobs(session=True),
            "lines-of-another": cluster.list_jobs(partial(cluster.is_unused, older=True)),
            "too-young": cluster.list_jobs(partial(cluster.is_unused, young=True)),
            "newest-line": cluster.list_jobs(partial(cluster.is_unused, limit_of="newest")),
            "mean": cluster.list_jobs(partial(cluster.is_unused, limit_of="mean")),
            "no-gpu": cluster.list_jobs(no_gpu=True),
            "part-of-a-name": cluster.list_jobs(partial(cluster.is_unused, inside=True)),
            "first-only": right[:1],
            "used-as-well": cluster.list_jobs(lambda _: True),
        }
        cases.append(Case(name, _list_cancelled(part, cluster, name), right, mistakes))
    part.compare(cases)
    part.note(f"right for {len(cases)} recorded queues")


def _list_cancelled(part: Part, cluster: Cluster, case: str) -> list[str]:
    """Return the numbers of the jobs that the script cancels, in the order of the queue."""
    lines = []
    for job in cluster.jobs:
        states = ("R", "RUNNING") if job.node else ("PD", "PENDING")
        lines.append("|".join((job.number, job.node, "gres:gpu:1" if job.gpus else "N/A", job.name, *states, job.start)))
    jobs = "\n".join(lines)
    programs = {"squeue": _SQUEUE.replace("@JOBS@", jobs), "scontrol": _SCONTROL.replace("@JOBS@", jobs)}
    programs |= dict.fromkeys(("python", "python3"), f'#!/bin/bash\nexec {shlex.quote(sys.executable)} "$@"\n')
    place = Place(job=cluster.session, arguments=("usage.txt",), programs=programs, texts={"usage.txt": cluster.table()})
    execution = execute(part, place, case=case)
    calls = execution.find_calls("scancel")
    if execution.errors and not calls and execution.code:
        raise Verdict("failed", "shell", f"{part.file.name} ended with code {execution.code}: {execution.errors}", case)
    numbers = {job.number for job in cluster.jobs}
    for call in calls:
        if call.words and not numbers & set(call.words):  # without arguments, scancel cancels nothing
            words = " ".join(("scancel", *call.words))
            raise Verdict("failed", "no-number", f"{words}: this names no job of the queue; name each job by its number", case)
    words = {word for call in calls for word in call.words}
    return [job.number for job in cluster.jobs if job.number in words]
