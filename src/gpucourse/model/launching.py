"""How an exercise is started: the `launch` of a manifest."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from gpucourse.model.fields import Name, ProcsPerNode, RelativePath, Seconds, Strict
from gpucourse.model.record import MOST_RESTARTS
from gpucourse.model.slurm import SLURM

USUAL = "local"
_EXTRAS = {"triton": "kernels"}


def advised_extra(package: str) -> str:
    """The extra of gpucourse that brings a package: the usual one, or another for what is large."""
    return _EXTRAS.get(package, USUAL)


def advise_install(packages: Iterable[str], python: str, *, here: bool) -> str:
    """What to type where an exercise's packages are missing, for that Python; `here`: it is this computer's."""
    extras = sorted({advised_extra(name) for name in packages})
    if here and "kernels" in extras and sys.platform == "darwin":
        return (
            "Triton has no build for macOS: run it on Linux machines, with gpucourse deploy 5 --target hosts, or --target aws"
        )
    return f"{python} -m pip install 'gpucourse[{','.join(extras)}]'"


class SlurmLaunch(Strict):
    """What a job asks Slurm for. The parameters that are named here are for the launcher: the script gets no such flag, but
    for `array`, whose whole list it gets."""

    partition: Name | None = Field(default=None, description="the parameter that names the partition; else the partition gpu")
    gpus: int = Field(default=1, ge=0, le=16, description="GPUs of each node, as in --gres=gpu:1")
    jobs: Name | None = Field(default=None, description="the parameter that says how many such jobs are submitted at once")
    array: Name | None = Field(default=None, description="the parameter whose values, parted by commas, are tried: one a task")
    at_once: Name | None = Field(default=None, description="the parameter that says how many tasks may run at once")
    gather: RelativePath | None = Field(default=None, description="a script for a job of its own, after all others went well")
    show_queue: bool = Field(default=False, description="keep a picture of the queue once a job waits with its reason")
    cancel_last: bool = Field(default=False, description="of several jobs, cancel the last after that picture")

    @model_validator(mode="after")
    def _one_kind(self) -> SlurmLaunch:
        if self.jobs and self.array:
            raise ValueError("jobs and array cannot be combined: equal jobs, or one job with a task for each value")
        if self.at_once and not self.array:
            raise ValueError("at_once belongs to array")
        return self


class Launch(Strict):
    """How the script is started. `procs_per_node: gpu` means one a GPU, and one where there is none; any other word is a
    parameter that says how many. `restarts`: how often torchrun may start all ranks again after one has failed, as a number
    or a parameter. Both parameters are for the launcher alone: the script gets no such flag.
    """

    kind: Literal["python", "torchrun", "slurm", "slurm-pty"]
    nodes: int = Field(default=1, ge=1, le=64, description="how many nodes when the learner does not say")
    min_nodes: int = Field(default=1, ge=1, le=64)
    max_nodes: int = Field(default=64, ge=1, le=64)
    procs_per_node: ProcsPerNode = "gpu"
    restarts: Annotated[int, Field(ge=0, le=MOST_RESTARTS)] | Name = 0
    timeout: Seconds = 1800.0
    collective_timeout: Seconds = 120.0
    slurm: SlurmLaunch | None = None

    @property
    def count_parameter(self) -> str | None:
        """The parameter that says how many processes a node there are, where the learner sets that."""
        return self.procs_per_node if isinstance(self.procs_per_node, str) and self.procs_per_node != "gpu" else None

    @property
    def for_launcher(self) -> frozenset[str]:
        """The parameters that the script gets no flags for."""
        asked = self.slurm or SlurmLaunch()
        names = (self.count_parameter, self.restart_parameter, asked.partition, asked.jobs, asked.at_once)
        return frozenset(name for name in names if name)

    @property
    def restart_parameter(self) -> str | None:
        """The parameter that says how often torchrun may start all ranks again, where the learner sets that."""
        return self.restarts if isinstance(self.restarts, str) else None

    @model_validator(mode="after")
    def _check_order(self) -> Launch:
        if not self.min_nodes <= self.nodes <= self.max_nodes:
            raise ValueError(
                f"nodes ({self.nodes}) must lie between min_nodes ({self.min_nodes}) and max_nodes ({self.max_nodes})"
            )
        if self.restarts != 0 and self.kind != "torchrun":
            raise ValueError(f"restarts are torchrun's, and the kind is {self.kind}")
        if self.slurm is not None and self.kind not in SLURM:
            raise ValueError(f"slurm is for the kinds {' and '.join(SLURM)}, not for {self.kind}")
        return self
