"""What gpucourse adds to Terraform on AWS: `deploy` against bare `terraform apply`, `destroy --all` against its slowest stack.

Against a mock account on this machine. Terraform's provider looks at what it builds every few seconds, as it does on AWS.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.measure import Row, attempt, seconds
from gpucourse.provision.providers import find_mirror
from tests.system.aws.courses import write_course
from tests.system.aws.learner import CloudLearner, cloud_learner
from tests.system.provisioning import any_terraform

ROUNDS = 3
MODULES = ("1", "2", "4", "B")
MORE, SLOWEST = 1.05, 1.3
PATIENCE_S = 600.0


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """How long one `deploy` took: until its last resource, and until the last readiness check."""

    built_s: float
    ready_s: float


def measure() -> Iterator[Row]:
    """Both comparisons."""
    yield from attempt("deploy 3 on AWS", _measure_deploy)
    yield from attempt("destroy --all, four stacks on AWS", _measure_destroy)


def _measure_deploy() -> list[Row]:
    ours: list[Deployment] = []
    bare: list[float] = []
    with _learner() as learner, tempfile.TemporaryDirectory(prefix="gpucourse-bench-") as place:
        _deploy(learner)  # both sides find providers that were fetched, and a mock that has answered before
        stack = _copy_stack(learner.workspace / ".gpucourse" / "stacks" / "03-aws-t4", Path(place))
        _destroy(learner)
        _terraform(learner, stack, "init", *_mirror(stack))
        for _ in range(ROUNDS):
            _terraform(learner, stack, "plan")  # so that the files that are read are warm: the provider alone has 700 MB
            bare.append(seconds(partial(_terraform, learner, stack, "apply", "-auto-approve")))
            _terraform(learner, stack, "destroy", "-auto-approve")
            learner.types("deploy", "3", "--target", "aws", "--dry-run", timeout=PATIENCE_S)
            ours.append(_deploy(learner))
            _destroy(learner)
    theirs = statistics.median(bare)
    built, ready = (statistics.median(times) for times in zip(*((line.built_s, line.ready_s) for line in ours), strict=True))
    return [
        Row(
            what="deploy 3 on AWS, to its last resource",
            ours_s=built,
            theirs="terraform apply",
            theirs_s=theirs,
            promise="5% more",
            held=built <= MORE * theirs,
        ),
        Row(
            what="... to the last readiness check",
            ours_s=ready,
            theirs="terraform apply",
            theirs_s=theirs,
            promise="none: bare Terraform waits for no node",
            held=True,
        ),
    ]


def _measure_destroy() -> Iterator[Row]:
    with _learner() as learner:
        learner.environ["GPUCOURSE_COURSE"] = str(write_course(learner.workspace.parent / "course"))
        _all_deployed(learner)
        alone = [seconds(partial(learner.types, "destroy", module, "--yes", timeout=PATIENCE_S)) for module in MODULES]
        _all_deployed(learner)
        together = seconds(partial(learner.types, "destroy", "--all", "--yes", timeout=PATIENCE_S))
    yield Row(
        what="destroy --all, four stacks on AWS",
        ours_s=together,
        theirs="the slowest of them alone",
        theirs_s=max(alone),
        promise="1.3 times",
        held=together <= SLOWEST * max(alone),
    )


@contextmanager
def _learner() -> Iterator[CloudLearner]:
    with tempfile.TemporaryDirectory(prefix="gpucourse-bench-") as folder, cloud_learner(Path(folder)) as learner:
        yield learner


def _deploy(learner: CloudLearner) -> Deployment:
    """Deploy module 3, and record when the line appeared that says that everything is built."""
    began = time.perf_counter()
    built = 0.0
    with learner.begins("deploy", "3", "--target", "aws", "--yes") as process:
        for line in process.stderr or ():
            if b"building 03-aws-t4" in line:
                built = time.perf_counter() - began
        said = process.stdout.read() if process.stdout else b""
    if process.returncode or not built:
        raise RuntimeError(f"deploy answered {process.returncode}: {said.decode(errors='replace')}")
    return Deployment(built_s=built, ready_s=time.perf_counter() - began)


def _destroy(learner: CloudLearner) -> None:
    learner.types("destroy", "--all", "--yes", timeout=PATIENCE_S)


def _all_deployed(learner: CloudLearner) -> None:
    """Deploy every module at the same time: how long that takes is not the question."""
    started = [learner.begins("deploy", module, "--target", "aws", "--yes") for module in MODULES]
    for process in started:
        _out, err = process.communicate(timeout=PATIENCE_S)
        if process.returncode:
            raise RuntimeError(f"deploy answered {process.returncode}: {err.decode(errors='replace')}")


def _copy_stack(folder: Path, place: Path) -> Path:
    """Terraform's files of a stack, as gpucourse gave them to it, without state."""
    folder_of_stack = next(
        file.parent for file in sorted(folder.rglob("main.tf")) if "modules" not in file.relative_to(folder).parts
    )
    stack = place / "stack"
    shutil.copytree(folder_of_stack, stack, ignore=shutil.ignore_patterns("*.tfstate*", "*.tfplan", "plan*", ".terraform*"))
    return stack


def _mirror(stack: Path) -> list[str]:
    mirror = find_mirror(stack, os.environ, None)
    return [f"-plugin-dir={mirror}"] if mirror else []


def _terraform(learner: CloudLearner, stack: Path, command: str, *options: str) -> None:
    environ = {**learner.environment, "TF_CLI_CONFIG_FILE": os.devnull, "CHECKPOINT_DISABLE": "1"}
    words = [*any_terraform().argv, command, "-input=false", *options]
    done = subprocess.run(words, cwd=stack, env=environ, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    if done.returncode:
        raise RuntimeError(f"terraform {command} answered {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
