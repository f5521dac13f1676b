"""The documents of `--json`. The fields of each class are the keys of its document, in this order; `docs/json.schema.json` is
made from the classes. A document that only one command prints is defined in that command's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from msgspec import UNSET, Struct, UnsetType, field

from gpucourse.model.deployment import Cloud
from gpucourse.model.diagnosis import Diagnosis
from gpucourse.model.record import GivenPrediction
from gpucourse.outside.documents import read_attributes

__all__ = [
    "UNSET",
    "CardDocument",
    "ClusterDocument",
    "JsonDocument",
    "LabDocument",
    "NodeDocument",
    "OneRun",
    "RunDocument",
    "UnsetType",
    "field",
]


class _Source:
    """The values of a document's fields. A value comes from `values` or else from the first model that has an attribute of the
    field's name."""

    def __init__(self, models: Sequence[object], values: Mapping[str, object]) -> None:
        self.__dict__.update(values)
        self._models = models

    def __getattr__(self, name: str) -> object:
        for model in self._models:
            if hasattr(model, name):
                return getattr(model, name)
        raise AttributeError(name)


class JsonDocument(Struct):
    """A document of `--json`, or a part of one. A field that is UNSET is not printed."""

    @classmethod
    def build(cls, *models: object, **values: object) -> Self:
        """Return a document made from these models. Each field's value is passed by name, or else read from the first model
        that has an attribute of that name. A nested document is made from the attribute's value in the same way."""
        return read_attributes(_Source(models, values), cls)


class RunDocument(JsonDocument):
    """One run. `script` is the learner's own script, or null. `seconds` is how long the ranks ran. `world_size` is the number
    of ranks, and `processes` how many of them the launcher started; the others were forked. `failed_rank` is the rank to look
    at first, or null if no rank failed. `environment` has the variables that were typed. `handed_on` names the variables whose
    values are not stored. `group_sizes` has the size of each rank's process group if torch reported it, or 0 if the rank made
    no group."""

    id: str
    exercise: str
    own_script: str | None = field(name="script")
    module: str
    stack: str
    mode: str
    launcher: str
    state: str
    shown_verdict: str | None = field(name="verdict")
    created: str
    started: str | None
    ended: str | None
    seconds: float | None
    nodes: list[str]
    rank_count: int = field(name="world_size")
    world_size: int = field(name="processes")
    restarts: int
    parameters: dict[str, Any]
    environment: dict[str, str]
    handed_on: list[str]
    torchrun: str
    group_sizes: list[int]
    warnings: list[str]
    prediction: GivenPrediction | None
    culprit: int | None = field(name="failed_rank")
    diagnoses: list[Diagnosis]
    drill: bool
    repair: bool
    profiled: bool
    collected: bool
    error: str | None


class OneRun(JsonDocument):
    """The output of `run --detach`, `cancel` and `break`. For a drill with a fault in the run, it also names the drill's
    folder. For a drill with a fault in the code, it also names the copy to repair and the faults to choose from."""

    run: RunDocument
    folder: Path | UnsetType = UNSET
    copy: Path | UnsetType = UNSET
    faults: dict[str, str] | UnsetType = UNSET


class CardDocument(JsonDocument):
    """The origin of a bundle: who made it, when, and how many files it has."""

    by: str
    made: str
    workspace: str
    gpucourse: str
    file_count: int = field(name="files")
    left_out: list[str]


class NodeDocument(JsonDocument):
    """One machine and how SSH reaches it."""

    name: str
    role: str
    address: str
    port: int
    private_address: str
    user: str
    gpus: int
    instance_type: str
    python: str
    mode: str
    host_key: str


class ClusterDocument(JsonDocument):
    """The Slurm cluster of a lab: the login node as typed, and the partition and account for GPU jobs. An empty text means
    that the cluster's default applies.
    """

    login: str
    partition: str
    account: str


class LabDocument(JsonDocument):
    """One lab as recorded, without its keys and variables. `lacks` says what it lacks in comparison with other labs of its
    kind, and what to type. `cloud` is null for labs that are not on AWS, and `cluster` for those that are not on a Slurm
    cluster."""

    stack: str
    uid: str
    module: str
    target: str
    template: str
    phase: str
    mode: str
    gpu: str
    link: str
    created: str
    expires: str | None
    nodes_wanted: int
    nodes: list[NodeDocument]
    error: str | None
    lacks: str
    cloud: Cloud | None = None
    cluster: ClusterDocument | None = None
