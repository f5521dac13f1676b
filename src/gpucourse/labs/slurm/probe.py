"""The probe: a short job that examines a compute node, because a login node shows little about it.

It reports which Python has torch, whether torch sees a GPU, and whether the nodes see the folder and reach each other.
"""

from __future__ import annotations

import re
import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpucourse.errors import GpucourseError, InfrastructureError, Interrupted, MissingError
from gpucourse.labs.slurm.facts import PLACES
from gpucourse.launch.sbatch import write_apptainer, write_pyxis
from gpucourse.model.deployment import SlurmDeployment
from gpucourse.model.slurm_facts import PartitionFacts, ProbeFacts
from gpucourse.model.slurm_settings import SlurmSettings
from gpucourse.outside.names import printable
from gpucourse.ports import Link
from gpucourse.remote import answers
from gpucourse.remote.agent.slurm import words
from gpucourse.remote.host_probe import PYTHONS
from gpucourse.remote.login_shell import last_words
from gpucourse.remote.patience import ANSWER_S
from gpucourse.remote.slurm_refusals import explain

WAIT_S = 60.0
"""How long `deploy` waits for the result of the probe, in seconds. If there is none by then, a later command reads it."""

MAX_NODES = 2
_OURS = ("--comment", "--job-name", "--output", "--open-mode", "--ntasks")
_POLL_S = (0.5, 1.0, 2.0, 3.0, 5.0)
_LATE_S = 10.0  # a network file system may show a new file on the login node some seconds later
_MINUTES = 5

HOME = 'HOME="$(eval "printf %s ~$(id -un)")"'
"""A shell assignment that sets HOME to the user's own home folder, because a link that works in a shared folder has another
HOME."""

_SCRIPT = """#!/bin/bash -l
# Look at the compute nodes: which Python has torch, and whether the nodes see this folder and each other.
{setup}export GPUCOURSE_HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
GPUCOURSE_LOOK='import importlib.util; print(importlib.util.find_spec("torch") is not None)'
pick=
venv=$(cd ../.. && pwd)/venv/bin/python
for name in {pythons}; do
  case $name in "~/"*) name=$HOME/${{name#"~/"}};; esac
  answer=$({prefix}$name -c "$GPUCOURSE_LOOK" 2>/dev/null) || continue
  [ -n "$pick" ] || pick=$name
  case $answer in *True) pick=$name; break;; esac
done
printf %s "$pick" > python
[ -z "$pick" ] || srun --mpi=none --ntasks-per-node=1 {srun}{prefix}$pick probe.py
echo $? > ended
"""
_PROGRAM = """
import datetime, json, os, socket, sys
number, nodes = int(os.environ.get("SLURM_NODEID", 0)), int(os.environ.get("SLURM_NNODES", 1))
report = {"host": socket.gethostname().split(".")[0], "version": "%d.%d.%d" % sys.version_info[:3]}
try:
    import torch
    report["torch"], report["cuda"] = torch.__version__, torch.version.cuda or ""
    if torch.cuda.is_available():
        report["gpu"] = torch.cuda.get_device_name(0)
except Exception as error:
    report["problem"] = "%s: %s" % (type(error).__name__, error)
if nodes > 1 and "problem" not in report:
    try:
        import torch.distributed as group
        first, last = map(int, sys.argv[1:]) if sys.argv[1:] else (29500, 29599)
        port = first + int(os.environ["SLURM_JOB_ID"]) % (last + 1 - first)
        group.init_process_group("gloo", init_method="tcp://%s:%d" % (os.environ["GPUCOURSE_HEAD"], port), rank=number,
                                 world_size=nodes, timeout=datetime.timedelta(seconds=60))
        total = torch.ones(1)
        group.all_reduce(total)
        report["met"] = int(total.item()) == nodes
        group.destroy_process_group()
    except Exception as error:
        report["met"], report["problem_of_meeting"] = False, "%s: %s" % (type(error).__name__, error)
with open("node-%d.new" % number, "w") as file:
    json.dump({name: value if isinstance(value, bool) else str(value)[:300] for name, value in report.items()}, file)
os.rename("node-%d.new" % number, "node-%d.json" % number)
"""
_READ = """
{places}; export PATH
printf 'queue '; squeue -h -j {job} -o '%T|%r|%S' 2>&1 | head -n 1; echo
printf 'job '; scontrol -o show job {job} 2>/dev/null | head -n 1; echo
cd {folder} 2>/dev/null || exit 0
ls >/dev/null
[ -e probe.log ] && echo log
[ -e ended ] && echo ended
[ -e python ] && {{ printf 'python '; head -c 300 python; echo; }}
for number in 0 1; do [ -e node-$number.json ] && {{ printf 'node '; head -c 3000 node-$number.json; echo; }}; done
[ -e setup.txt ] && {{ printf 'setup '; tail -n 1 setup.txt | head -c 300; echo; }}
[ -e probe.log ] && {{ echo output; tail -c 1500 probe.log; }}
exit 0
"""


@dataclass(kw_only=True)
class _NodeReport:
    """The report of one compute node: its Python, torch and GPU, and whether it met the other nodes."""

    host: str
    version: str
    torch: str = ""
    cuda: str = ""
    gpu: str = ""
    problem: str = ""
    met: bool | None = None
    problem_of_meeting: str = ""

    def __post_init__(self) -> None:
        answers.host_name(self.host)
        self.torch, self.cuda, self.gpu = (printable(text, 80) for text in (self.torch, self.cuda, self.gpu))
        self.version = printable(self.version, 20)
        self.problem, self.problem_of_meeting = printable(self.problem), printable(self.problem_of_meeting)


@dataclass(kw_only=True)
class _Answer:
    """The login node's answer about the probe.

    `state`, `reason`, `expected`: Slurm's words while the job is in the queue.
    `setup`: the last error message of the setup lines.
    `final`: the state of an ended job in Slurm's words, if Slurm still remembers the job.
    """

    state: str = ""
    reason: str = ""
    expected: str = ""
    final: str = ""
    has_log: bool = False
    has_ended: bool = False
    python: str = ""
    nodes: list[_NodeReport] = field(default_factory=list)
    setup: str = ""
    output: str = ""

    @property
    def is_in_queue(self) -> bool:
        """Return whether Slurm still lists the job as waiting or running."""
        return words.phase(self.state) in {words.WAITING, words.RUNNING}


def name_folder(uid: str) -> str:
    """Return the name of the probe's folder, below `.gpucourse/jobs`."""
    return f"probe-{uid}"


def submit(
    link: Link, deployment: SlurmDeployment, partition: PartitionFacts, *, nodes: int, ports: tuple[int, int]
) -> ProbeFacts:
    """Submit the probe to a partition, and cancel an earlier probe that is still waiting. Return its state, `pending`.

    Commands over the link start in the lab's folder. Raises the errors of `slurm_refusals` if Slurm refuses the job.
    """
    settings = deployment.settings
    count = max(1, min(nodes, MAX_NODES, partition.count_nodes(gpus=1 if partition.gpus else 0, gpu=settings.gpu)))
    former = f"scancel {deployment.probe.job} 2>/dev/null; " if deployment.probe.state == "pending" else ""
    folder = f".gpucourse/jobs/{name_folder(deployment.uid)}"
    job = submit_job(
        link,
        deployment,
        partition,
        name="probe",
        minutes=_MINUTES,
        options=(f"--nodes={count}", "--ntasks-per-node=1", "--open-mode=truncate"),
        folder=folder,
        prepare=f"{former}rm -rf {folder}",
        files={"probe.py": _PROGRAM, "probe.sh": write_script(settings, ports)},
    )
    return ProbeFacts(state="pending", job=job)


def submit_job(
    link: Link,
    deployment: SlurmDeployment,
    partition: PartitionFacts,
    *,
    name: str,
    minutes: int,
    options: Sequence[str],
    folder: str,
    prepare: str,
    files: Mapping[str, str],
) -> str:
    """Write these files into a folder of the lab, and submit the last one as a job. Return the job's number.

    `minutes`: the job's time limit, unless the partition allows less.
    `prepare`: shell commands to run first. Commands over the link start in the lab's folder. Raises the errors of
    `slurm_refusals`.
    """
    seconds = minutes * 60.0 if partition.max_s is None else min(minutes * 60.0, partition.max_s)
    settings = replace(deployment.settings, partition=partition.name, cpu_partition="")
    flags = [
        *settings.flags(gpus=1 if partition.gpus else 0),
        *(*options, f"--time={max(1, int(seconds // 60))}", f"--job-name=gpucourse-{name}"),
        *(f"--comment={deployment.comment}", f"--output={name}.log"),
    ]
    write = " && ".join(f"printf %s {shlex.quote(text)} > {file}" for file, text in files.items())
    command = (
        f"{PLACES}; {HOME}; export PATH HOME; umask 077\n{prepare}\nmkdir -p {folder} && cd {folder} && {write} || exit 93\n"
        f"exec sbatch --parsable {shlex.join(flags)} {list(files)[-1]}"
    )
    result = link.run(command, timeout_s=ANSWER_S)
    text = result.stdout.decode("utf-8", "replace").strip()
    match = re.fullmatch(r"(\d{1,12})(;.*)?", text.rpartition("\n")[2])
    if not result.ok or match is None:
        message = (result.stderr or result.stdout).decode("utf-8", "replace").strip()[-600:]
        raise explain_refusal(link, deployment, message, flags)
    return match[1]


def explain_refusal(link: Link, deployment: SlurmDeployment, message: str, flags: Sequence[str]) -> GpucourseError:
    """Return the error for a job that Slurm refused: what the job requested (`flags`), and what the learner can change."""
    error = explain(link.node, message)
    if isinstance(error, InfrastructureError):
        return error
    accounts = ", ".join(deployment.facts.accounts)
    yours = f"; your accounts: {accounts}" if accounts else ""
    typed = shlex.join(flag for flag in flags if not flag.startswith(_OURS))
    if "account" in message and not deployment.settings.account:
        command = replace(deployment.typed, account="NAME").write_command(deployment.module)
        return MissingError(error.what, hint=f"{command}{yours}; the administrator knows your account")
    return MissingError(
        error.what,
        hint=f"the job requested {typed}{yours}. Change one: {deployment.command} with another --partition, --account, --qos, "
        "--gpu or --slurm",
    )


def write_script(settings: SlurmSettings, ports: tuple[int, int]) -> str:
    """Return the text of the probe's batch file. It tries the environment of `--install` first. `ports`: the ports that gloo
    may use."""
    container = settings.container
    names = [shlex.quote(settings.python)] if settings.python else ['"$venv"', *map(shlex.quote, PYTHONS)]
    prefix = write_apptainer(container.apptainer, '"$PWD"') if container and container.apptainer else ""
    pyxis = container.pyxis if container else ""
    srun = write_pyxis(pyxis, "$PWD", "$PWD") if pyxis else ""
    text = _SCRIPT.format(
        setup="".join(["{\n", *(f"{line}\n" for line in settings.setup), "} 2> setup.txt\n"]) if settings.setup else "",
        pythons=" ".join(names),
        prefix=prefix,
        srun=srun,
    )
    return text.replace("probe.py\n", f"probe.py {ports[0]} {ports[1]}\n")


def wait(link: Link, deployment: SlurmDeployment, stop: threading.Event, *, wait_s: float = WAIT_S) -> ProbeFacts:
    """Return the result of the probe, or its state in the queue after `wait_s` seconds. The link's commands start in the
    lab's folder."""
    probe, start_s, missing_since = deployment.probe, time.monotonic(), 0.0
    polls = iter(_POLL_S)
    poll_s = next(polls)
    while True:
        answer = _read(link, deployment)
        now_s = time.monotonic()
        is_complete = answer.has_ended and (not answer.python or bool(answer.nodes))
        if not answer.is_in_queue and not is_complete:
            missing_since = missing_since or now_s
        if is_complete or (missing_since and now_s - missing_since > _LATE_S):
            return _judge(deployment, answer)
        if now_s - start_s > wait_s and answer.is_in_queue:
            return replace(probe, state="pending", reason=_explain_wait(answer), expected=answer.expected)
        if stop.wait(poll_s):
            raise Interrupted("stopped while the probe was waiting", hint=deployment.command)
        poll_s = next(polls, poll_s)


def check(deployment: SlurmDeployment) -> None:
    """Raise the error of a failed probe: MissingError without torch, otherwise InfrastructureError."""
    probe = deployment.probe
    if probe.state == "failed":
        kind: type[GpucourseError] = MissingError if probe.lacks_software else InfrastructureError
        raise kind(probe.problem, hint=probe.hint)


def _read(link: Link, deployment: SlurmDeployment) -> _Answer:
    folder = shlex.quote(f".gpucourse/jobs/{name_folder(deployment.uid)}")
    result = link.run(_READ.format(places=PLACES, job=deployment.probe.job, folder=folder), timeout_s=ANSWER_S)
    text, _, output = result.stdout.decode("utf-8", "replace").partition("\noutput\n")
    answer = _Answer(output=last_words(output.encode(), 600))
    for line in text.splitlines():
        kind, _, value = line.partition(" ")
        if kind == "queue" and value.count("|") == 2:
            answer.state, answer.reason, answer.expected = (printable(word, 100) for word in value.split("|"))
            answer.expected = "" if answer.expected in {"N/A", "Unknown"} else answer.expected
        elif kind == "job":
            row = next(iter(words.details(value).values()), {})
            answer.final = printable(row.get("state", ""), 40)
        elif kind == "node":
            answer.nodes.append(answers.parse(link.node.label, "the report of a compute node", value.encode(), _NodeReport))
        elif kind == "setup":
            answer.setup = printable(value, 300)
        elif kind == "python":
            answer.python = printable(value, 300)
        answer.has_log |= kind == "log"
        answer.has_ended |= kind == "ended"
    return answer


def _explain_wait(answer: _Answer) -> str:
    """Return why the job waits: the reason in Slurm's words, with its meaning if that is known."""
    meaning = words.explain_reason(answer.reason)
    return f"{answer.reason}: {meaning}" if meaning else answer.reason or answer.state


def _judge(deployment: SlurmDeployment, answer: _Answer) -> ProbeFacts:
    """Return the result of a probe that has ended."""
    probe, settings = deployment.probe, deployment.settings
    retry = deployment.command
    result = replace(
        probe, state="failed", reason="", expected="", nodes=tuple(node.host for node in answer.nodes), python=answer.python
    )
    if not answer.has_log:
        result.problem, result.hint = _explain_silence(deployment, answer)
    elif answer.has_ended and not answer.python:
        result.lacks_software = True
        program = settings.python or "no Python that was tried"
        result.problem = (
            f"{program} {'does not start' if settings.python else 'starts'} on a compute node{_quote(answer.setup)}"
        )
        result.hint = f"name one: slurm: {{setup: [module load python], python: python3}} in gpucourse.yaml, then {retry}"
    elif not answer.nodes:
        state = f" ({answer.final})" if answer.final else ""
        result.problem = (
            f"the probe, job {probe.job}, ended without a result{state}{_quote(answer.output, 'its log ends with')}"
        )
        result.hint = f"if a line of setup is wrong, change it in gpucourse.yaml, then {retry}"
    else:
        first = answer.nodes[0]
        result.version, result.torch, result.cuda, result.gpu = first.version, first.torch, first.cuda, first.gpu
        unmet = next((node for node in answer.nodes if node.met is False), None)
        if not first.torch:
            result.lacks_software = True
            result.problem = f"{answer.python} ({first.version}) on the compute node {first.host} has no torch"
            result.problem += "" if settings.python else ", and no other Python that was found has it"
            result.problem += _quote(answer.setup)
            result.hint = _advise_torch(deployment, retry)
        elif unmet is not None:
            result.problem = (
                f"the compute nodes {' and '.join(result.nodes)} do not reach each other ({unmet.problem_of_meeting})"
            )
            result.hint = (
                "ask the administrator whether nodes of one job may open TCP connections to each other's ports above 1024"
            )
        else:
            result.state = "passed"
    return result


def _explain_silence(deployment: SlurmDeployment, answer: _Answer) -> tuple[str, str]:
    """Return the problem and the hint for a probe that ended without leaving a file."""
    job, place = deployment.probe.job, deployment.facts.folder or "your home folder"
    if words.phase(answer.final) == words.ENDED and words.ending(answer.final) != "exited":
        return f"the probe, job {job}, did not run: Slurm says {answer.final}", f"{deployment.command} submits it again"
    return (
        f"a compute node does not see {place}: the probe, job {job}, ran and left nothing there",
        f"name a folder that all nodes share: slurm: {{folder: $SCRATCH}} in gpucourse.yaml, then {deployment.command}",
    )


def _advise_torch(deployment: SlurmDeployment, retry: str) -> str:
    """Return what to type if no Python on a compute node has torch: load a module that may contain it, or use `--install`."""
    module = next((name for name in deployment.facts.modules if "torch" in name.lower()), "")
    setup = shlex.quote(f"setup=module load {module}")
    load = f"{retry} --slurm {setup} loads a module that may contain torch; or " if module else ""
    return f"{load}{retry} --install creates an environment with torch on the cluster"


def _quote(output: str, title: str = "the setup lines printed") -> str:
    last: Sequence[str] = output.strip().splitlines()[-1:]
    return f" ({title}: {last[0]})" if last else ""
