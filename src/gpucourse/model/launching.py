"""The keys `launch` and `parameters` of a manifest: how an exercise starts."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from gpucourse.hardware import hardware
from gpucourse.limits import MAX_NODES
from gpucourse.model.fields import Name, ProcsPerNode, RelativePath, Scalar, Seconds, Strict, Text, check_choice
from gpucourse.model.launchers import LAUNCHERS, LauncherTraits, find_traits, list_launchers
from gpucourse.model.record import MAX_RESTARTS

USUAL = "local"
_EXTRAS = {"triton": "kernels"}


def advised_extra(package: str) -> str:
    """Return the extra of gpucourse that installs a package. Large packages have a separate extra."""
    return _EXTRAS.get(package, USUAL)


def advise_install(packages: Iterable[str], python: str, *, on_this_computer: bool) -> str:
    """Return what to type if a Python lacks packages that an exercise needs. `on_this_computer`: whether that Python is on this
    computer, not on a node."""
    extras = sorted({advised_extra(name) for name in packages})
    if on_this_computer and "kernels" in extras and sys.platform == "darwin":
        return (
            "Triton has no build for macOS: run it on Linux machines, with gpucourse deploy 5 --target hosts, or --target aws"
        )
    return f"{python} -m pip install 'gpucourse[{','.join(extras)}]'"


class SlurmLaunch(Strict):
    """The resources that a job requests from Slurm. The parameters named here are for the launcher. The script receives no
    flags for them, except for `array`, for which it receives the whole list.
    """

    partition: Name | None = Field(default=None, description="the parameter that names the partition; without one, gpu")
    gpus: int = Field(default=1, ge=0, le=16, description="GPUs of each node, as in --gres=gpu:1")
    jobs: Name | None = Field(default=None, description="the parameter that says how many of these jobs are submitted together")
    array: Name | None = Field(default=None, description="the parameter with one value for each task, separated by commas")
    at_once: Name | None = Field(default=None, description="the parameter that says how many tasks may run at the same time")
    gather: RelativePath | None = Field(default=None, description="a script for a last job, after all others have succeeded")
    show_queue: bool = Field(default=False, description="record the queue as soon as waiting jobs show their reasons")
    cancel_last: bool = Field(default=False, description="with several jobs, cancel the last one when the queue is recorded")

    @model_validator(mode="after")
    def _one_kind(self) -> SlurmLaunch:
        if self.jobs and self.array:
            raise ValueError("jobs and array cannot be combined: equal jobs, or one job with a task for each value")
        if self.at_once and not self.array:
            raise ValueError("at_once belongs to array")
        return self


def _list_launchers(schema: dict[str, Any]) -> None:
    schema |= {"enum": list(LAUNCHERS), "description": "; ".join(find_traits(name).title for name in LAUNCHERS)}


class Launch(Strict):
    """How the script is started.

    `procs_per_node`: a number, a parameter, or `gpu`: one process for each GPU, and one process without a GPU.
    `restarts`: how often torchrun may start all ranks again after one has failed; a number or a parameter. The script receives
    no flags for these parameters.
    """

    kind: Annotated[str, AfterValidator(lambda name: check_choice(name, LAUNCHERS)), Field(json_schema_extra=_list_launchers)]
    nodes: int = Field(default=1, ge=1, le=MAX_NODES, description="the number of nodes, unless the learner sets another")
    min_nodes: int = Field(
        default=1, ge=1, le=MAX_NODES, description="the minimum number of nodes that the learner may request"
    )
    max_nodes: int = Field(
        default=MAX_NODES, ge=1, le=MAX_NODES, description="the maximum number of nodes that the learner may request"
    )
    procs_per_node: ProcsPerNode = Field(
        default="gpu",
        description="a number, gpu (one for each GPU, or one without a GPU), or the name of a parameter",
    )
    restarts: Annotated[int, Field(ge=0, le=MAX_RESTARTS)] | Name = Field(
        default=0, description="how often torchrun may start all ranks again: a number, or the name of a parameter"
    )
    timeout: Seconds = Field(default=1800.0, description="how long a run may take; by default 30m")
    collective_timeout: Seconds = Field(
        default=120.0, description="how long a rank waits for the others in a collective; by default 2m"
    )
    slurm: SlurmLaunch | None = Field(default=None, description="the resources that a job requests from Slurm")

    @property
    def traits(self) -> LauncherTraits:
        """Return the launcher that `kind` names."""
        return find_traits(self.kind)

    @property
    def slurm_request(self) -> SlurmLaunch:
        """Return the request of a job to Slurm; the default request if the manifest has none."""
        return self.slurm or SlurmLaunch()

    @property
    def count_parameter(self) -> str | None:
        """Return the name of the parameter that sets the number of processes on each node, or None if no parameter sets it."""
        return self.procs_per_node if isinstance(self.procs_per_node, str) and self.procs_per_node != "gpu" else None

    @property
    def for_launcher(self) -> frozenset[str]:
        """Return the parameters that only the launcher receives, so that the script has no flags for them."""
        request = self.slurm_request
        names = (self.count_parameter, self.restart_parameter, request.partition, request.jobs, request.at_once)
        return frozenset(name for name in names if name)

    @property
    def restart_parameter(self) -> str | None:
        """Return the name of the parameter that sets how often torchrun may start all ranks again, or None if no parameter sets
        it."""
        return self.restarts if isinstance(self.restarts, str) else None

    @model_validator(mode="after")
    def _check_order(self) -> Launch:
        if not self.min_nodes <= self.nodes <= self.max_nodes:
            raise ValueError(
                f"nodes ({self.nodes}) must be between min_nodes ({self.min_nodes}) and max_nodes ({self.max_nodes})"
            )
        if self.restarts != 0 and not self.traits.can_restart:
            raise ValueError(f"restarts is for the kind torchrun, not for {self.kind}")
        if self.slurm is not None and not self.traits.by_slurm:
            by_slurm = " and ".join(list_launchers(lambda traits: traits.by_slurm))
            raise ValueError(f"slurm is for the kinds {by_slurm}, not for {self.kind}")
        return self


ARTICLE = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}


def _is_of_kind(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "bool"
    return isinstance(value, {"int": (int,), "float": (int, float), "str": (str,), "bool": ()}[kind])


def _convert_item(word: str, kind: str | None) -> Scalar:
    return int(word) if kind == "int" and re.fullmatch(r"[0-9]{1,18}", word) else word


class Parameter(Strict):
    """A value that the learner may change: `--set name=value`, or the script's own flag `--name`."""

    name: Name = Field(description="its name: batch_size is the script's flag --batch-size")
    type: Literal["int", "float", "str", "bool"] = Field(description="the type of the script's flag")
    default: Scalar = Field(description="the default of the script's flag")
    help: Text = Field(description="what it is, in a few words")
    min: float | None = Field(default=None, description="the smallest number that may be given")
    max: float | None = Field(default=None, description="the largest number that may be given")
    choices: tuple[Scalar, ...] = Field(default=(), description="the only values that may be given")
    choices_of: Literal["instance types"] | None = Field(
        default=None, description="choices from a table: the instance types with a GPU that the course offers"
    )
    unit: str = Field(default="", description="the unit of the number")
    each: Literal["int", "str"] | None = Field(default=None, description="for str: values separated by commas, of this type")
    local: Scalar | None = Field(default=None, description="the default on simulated nodes, if it must be smaller there")

    @model_validator(mode="before")
    @classmethod
    def _fill_in_choices(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("choices_of") != "instance types":
            return data
        if "choices" in data:
            raise ValueError("choices and choices_of cannot be combined")
        return data | {"choices": hardware().startable_types}

    @property
    def of(self) -> Literal["int", "float", "str", "bool"]:
        """Return the type of the values to which the range and the choices apply. For a list, this is the type of its items."""
        return self.each or self.type

    @property
    def flag(self) -> str:
        """Return the script's flag for this parameter."""
        return "--" + self.name.replace("_", "-")

    @property
    def local_default(self) -> Scalar:
        """Return the default on simulated nodes."""
        return self.default_for(local=True)

    def default_for(self, *, local: bool) -> Scalar:
        """Return the value that applies if the learner sets none. On simulated nodes, this is `local` if the manifest has
        it."""
        return self.local if local and self.local is not None else self.default

    def find_objection(self, value: Scalar) -> str | None:
        """Return why the type, the range or the choices do not allow `value`, or None if it is allowed."""
        if not _is_of_kind(value, self.type):
            return f"{value!r} is not {ARTICLE[self.type]}"
        values = [_convert_item(word.strip(), self.each) for word in str(value).split(",")] if self.each else [value]
        return next((objection for item in values if (objection := self._object_to_value(item))), None)

    def _object_to_value(self, value: Scalar) -> str | None:
        if not _is_of_kind(value, self.of):
            return f"{value!r} is not {ARTICLE[self.of]}"
        if self.choices and value not in self.choices:
            return f"{value!r} is not one of {', '.join(map(str, self.choices))}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"{value!r} is not a finite number"
        if isinstance(value, (int, float)) and self.min is not None and value < self.min:
            return f"{value} is below {self.min:g}"
        if isinstance(value, (int, float)) and self.max is not None and value > self.max:
            return f"{value} is above {self.max:g}"
        return None

    @model_validator(mode="after")
    def _defaults_are_allowed(self) -> Parameter:
        if self.each and self.type != "str":
            raise ValueError(f"each is for text with commas in it, not for {ARTICLE[self.type]}")
        if self.of in {"str", "bool"} and (self.min is not None or self.max is not None):
            raise ValueError(f"min and max are for numbers, not for {ARTICLE[self.of]}")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min ({self.min:g}) is above max ({self.max:g})")
        for choice in self.choices:
            if not _is_of_kind(choice, self.of):
                raise ValueError(f"the choice {choice!r} is not {ARTICLE[self.of]}")
        for key, value in (("default", self.default), ("local", self.local)):
            if value is not None and (objection := self.find_objection(value)):
                raise ValueError(f"{key}: {objection}")
        return self
