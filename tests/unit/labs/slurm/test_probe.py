from __future__ import annotations

import json
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from gpucourse.errors import InfrastructureError, MissingError, NodeUntrusted
from gpucourse.labs.slurm import probe
from gpucourse.model.slurm_facts import ProbeFacts, SlurmFacts
from gpucourse.model.slurm_settings import SlurmContainer, SlurmSettings
from gpucourse.ports import CommandResult, Link
from tests.unit.labs.slurm.test_deploy import FACTS, make_lab
from tests.unit.labs.slurm.test_facts import LOGIN

LAB = make_lab(ProbeFacts(state="pending", job="7"))
NODE = {"host": "gpu1", "version": "3.11.2", "torch": "2.9.0", "cuda": "12.4", "gpu": "NVIDIA A100"}
PASSED = ("log", "ended", "python python3", f"node {json.dumps(NODE)}")


class Answers:
    """A login node that answers with these lines."""

    def __init__(self, *lines: str) -> None:
        self.node, self.text = LOGIN, "\n".join(("", *lines, ""))

    def run(self, _command: str, *, timeout_s: float) -> CommandResult:
        del timeout_s
        return CommandResult(code=0, stdout=self.text.encode(), stderr=b"")


def wait(*lines: str, lab: Any = LAB) -> ProbeFacts:
    return probe.wait(cast("Link", Answers(*lines)), lab, threading.Event(), wait_s=0.0)


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_POLL_S", (0.0,))
    monkeypatch.setattr(probe, "_LATE_S", 0.0)


@pytest.mark.parametrize(
    ("message", "account", "hint"),
    [
        ("Invalid account", "", "gpucourse deploy 3 --target slurm --account NAME; your accounts: dead, abc; "),
        ("Requested time limit is invalid", "abc", "the job requested --time=5; your accounts: dead, abc. Change one: "),
    ],
)
def test_explain_refusal_says_what_to_change(message: str, account: str, hint: str) -> None:
    lab = replace(LAB, settings=SlurmSettings(account=account))
    error = probe.explain_refusal(cast("Link", Answers()), lab, message, ["--time=5", "--comment=gpucourse-u"])
    assert isinstance(error, MissingError)
    assert error.hint.startswith(hint)


def test_wait_returns_what_the_compute_node_reports() -> None:
    result = wait("queue RUNNING|None|N/A", *PASSED)
    assert (result.state, result.nodes, result.python) == ("passed", ("gpu1",), "python3")
    assert (result.torch, result.cuda, result.gpu, result.version) == ("2.9.0", "12.4", "NVIDIA A100", "3.11.2")


def test_wait_returns_why_the_job_is_still_in_the_queue() -> None:
    result = wait("queue PENDING|Priority|2026-11-29T17:00:00")
    assert (result.state, result.expected) == ("pending", "2026-11-29T17:00:00")
    assert result.reason == "Priority: other jobs are ahead of it"


@pytest.mark.parametrize(
    ("lines", "kind", "problem", "hint"),
    [
        (("log", "ended", "python "), MissingError, "no Python that was tried starts", "setup: [module load python]"),
        (
            ("log", "ended", "python python3", "setup ERROR: no such module", 'node {"host": "gpu1", "version": "3.6.8"}'),
            MissingError,
            r"python3 \(3.6.8\) on the compute node gpu1 has no torch.*printed: ERROR: no such module",
            "gpucourse deploy 3 --target slurm --slurm 'setup=module load PyTorch/2.5' loads",
        ),
        (("job JobId=7 JobState=FAILED",), InfrastructureError, "does not see your home folder", "folder: $SCRATCH"),
        (("job JobId=7 JobState=NODE_FAIL",), InfrastructureError, "did not run: Slurm says NODE_FAIL", "submits it again"),
        (
            ("log", "job JobId=7 JobState=TIMEOUT", "output", "slow"),
            InfrastructureError,
            r"ended without a result \(TIMEOUT\) \(its log ends with: slow\)",
            "setup",
        ),
        (
            ("log", "ended", "python python3", f"node {json.dumps({**NODE, 'met': False, 'problem_of_meeting': 'refused'})}"),
            InfrastructureError,
            r"gpu1 do not reach each other \(refused\)",
            "administrator",
        ),
    ],
)
def test_check_raises_the_error_of_a_probe_that_failed(
    lines: tuple[str, ...], kind: type[Exception], problem: str, hint: str
) -> None:
    lab = replace(LAB, facts=SlurmFacts(partitions=FACTS.partitions, modules=("PyTorch/2.5",)))
    lab.probe = wait(*lines, lab=lab)
    with pytest.raises(kind, match=problem) as caught:
        probe.check(lab)
    assert hint in getattr(caught.value, "hint", "")


def test_wait_names_the_configured_python_that_does_not_start() -> None:
    lab = replace(LAB, settings=SlurmSettings(python="python9"))
    result = wait("log", "ended", "python ", "setup ERROR: no such module", lab=lab)
    assert result.problem == "python9 does not start on a compute node (the setup lines printed: ERROR: no such module)"
    assert result.lacks_software


@pytest.mark.parametrize("report", ['{"host": "a b", "version": "3"}', "[]", '{"host": "a"}'])
def test_wait_does_not_use_what_no_compute_node_reports(report: str) -> None:
    with pytest.raises(NodeUntrusted, match="the report of a compute node"):
        wait("log", "ended", "python python3", f"node {report}")


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        (SlurmSettings(), ('for name in "$venv" python3 python ', "probe.py 29500 29599")),
        (SlurmSettings(setup=("module load a", "conda activate b")), ("{\nmodule load a\nconda activate b\n} 2> setup.txt",)),
        (SlurmSettings(python="apptainer exec img python"), ("for name in 'apptainer exec img python';",)),
        (
            SlurmSettings(container=SlurmContainer(apptainer="$SCRATCH/a.sif")),
            ('apptainer exec --nv --bind "$PWD" "$SCRATCH/a.sif" $name',),
        ),
        (
            SlurmSettings(container=SlurmContainer(pyxis="nvcr.io/a:1")),
            ("srun --mpi=none --ntasks-per-node=1 --container-image",),
        ),
    ],
)
def test_write_script_is_a_script_of_bash(settings: SlurmSettings, parts: tuple[str, ...], tmp_path: Path) -> None:
    text = probe.write_script(settings, (29500, 29599))
    assert [part for part in parts if part not in text] == []
    (tmp_path / "probe.sh").write_text(text)
    subprocess.run(["bash", "-n", tmp_path / "probe.sh"], check=True)
