"""`gpucourse.yaml`: the learner's settings. Unknown keys are refused. A complaint names the file, the key and the reason."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from gpucourse.errors import ManifestError, suggest
from gpucourse.limits import DEFAULT_LAB_HOURS, MAX_LAB_HOURS
from gpucourse.model.fields import Bytes, Seconds
from gpucourse.model.labs import GPU
from gpucourse.model.slurm_settings import SlurmClusters, SlurmContainer, SlurmSettings
from gpucourse.outside.files import read_bounded
from gpucourse.outside.names import OutsideError, is_shown, printable
from gpucourse.outside.yaml_reader import MAX_BYTES, Complaint, read_document

_MAX_COMPLAINTS = 50
_MAX_RANGE = len("29500-29599")


class Settings(BaseModel):
    """The settings of one workspace, with the defaults of a new one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: str = "local"
    rendezvous_ports: str = "29500-29599"
    region: str = Field(default="us-east-2", pattern=r"^[a-z]{2}(-[a-z]+)+-\d$", description="the AWS region of new labs")
    gpu: GPU | None = Field(default=None, description="the GPU of new labs, instead of the module's own choice")
    other_gpus: tuple[GPU, ...] = Field(default=(), description="GPUs to use if the requested one is sold out, best first")
    spot: bool = Field(default=False, description="spot instances: cheaper, but AWS may reclaim them at two minutes' notice")
    ttl: Seconds = Field(
        default=DEFAULT_LAB_HOURS * 3600,
        le=MAX_LAB_HOURS * 3600,
        description=f"how long a lab lives before it ends itself: {DEFAULT_LAB_HOURS:.0f}h",
    )
    budget_usd: Decimal | None = Field(default=None, ge=0, le=10**9, description="what the course may cost in all, in USD")
    max_gpu_hours: float | None = Field(
        default=None, ge=0, le=10**6, description="how many GPU hours runs on Slurm clusters may use in all"
    )
    owner: str = Field(default="", max_length=64, description="who pays, as a tag of every resource; your login by default")
    ssh_cidr: str = Field(
        default="", description="the address that may log in, such as 203.0.113.7/32 (default: looked up online)"
    )
    ssh_proxy_command: str = Field(default="", description="how SSH reaches cloud nodes and hosts, as OpenSSH's ProxyCommand")
    node_python: str = Field(
        default="", description="the interpreter with torch on cloud nodes, hosts and this computer; the stack's by default"
    )
    host_pythons: dict[str, str] = Field(
        default_factory=dict,
        description="the interpreter of hosts that need one other than node_python: user@name:port to path",
    )
    log_limit: Bytes = Field(default=1 << 30, ge=1 << 10, description="how much of each rank's log is kept: 1 GiB")
    output_limit: Bytes = Field(
        default=10 << 30, ge=1 << 20, description="how much of the outputs of one node is collected, for each run: 10 GiB"
    )
    hosts: tuple[str, ...] = Field(default=(), description="machines that exist already, for the target hosts: user@name:port")
    slurm: SlurmClusters = Field(
        default_factory=SlurmClusters, description="the Slurm cluster where you have an account, or several by name"
    )

    @field_validator("target")
    @classmethod
    def _check_target(cls, value: str, info: ValidationInfo) -> str:
        targets = info.context or ()
        if targets and value not in targets:
            suggestion = suggest(value, targets, cutoff=0.65)
            raise ValueError(f"Input should be {', '.join(map(repr, targets[:-1]))} or {targets[-1]!r}.{suggestion}")
        return value

    @field_validator("owner", "ssh_cidr", "ssh_proxy_command", "node_python", "host_pythons", "hosts")
    @classmethod
    def _check_text(cls, value: str | tuple[str, ...] | dict[str, str]) -> str | tuple[str, ...] | dict[str, str]:
        texts = (value,) if isinstance(value, str) else (*value, *(value.values() if isinstance(value, dict) else ()))
        if not all(map(is_shown, texts)):
            raise ValueError("must not contain control characters")
        return value

    @field_validator("ssh_proxy_command")
    @classmethod
    def _words(cls, value: str) -> str:
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise ValueError(f"is not a command: {str(error).lower()}") from error
        if value and not (words and words[0]):
            raise ValueError("is not a command: it names no program")
        return value

    @field_validator("rendezvous_ports")
    @classmethod
    def _range(cls, value: str) -> str:
        first, _, last = value.partition("-")
        if len(value) > _MAX_RANGE:  # Python refuses to parse thousands of digits, with its own message
            first = ""
        if not (first.isdecimal() and (last or first).isdecimal() and 1024 <= int(first) <= int(last or first) <= 65535):
            raise ValueError("must be a range of ports between 1024 and 65535, such as 29500-29599")
        return value

    @property
    def ports(self) -> tuple[int, int]:
        """Return the first and the last port at which ranks may meet."""
        first, _, last = self.rendezvous_ports.partition("-")
        return int(first), int(last or first)


def read_settings(path: Path, targets: Sequence[str] = ()) -> Settings:
    """Read the settings at `path`, or return the defaults if there is no file. Raises ManifestError with every complaint.

    `targets`: the valid targets. If it is empty, any target is valid.
    """
    hint = f"fix {path}, or delete it to get the defaults back"
    try:
        document = read_document(read_bounded(path.resolve(), MAX_BYTES))
    except FileNotFoundError:
        return Settings()
    except (OSError, OutsideError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        reason = error.strerror if isinstance(error, OSError) else error
        raise ManifestError([f"{path}: cannot be read: {reason}"], hint=hint) from error
    if document.empty:
        return Settings()
    if document.complaints:
        raise ManifestError([_place(path, complaint) for complaint in document.complaints[:_MAX_COMPLAINTS]], hint=hint)
    if not isinstance(document.data, dict):
        raise ManifestError([f"{path}: must contain keys and values, not a {type(document.data).__name__}"], hint=hint)
    try:
        return Settings.model_validate(document.data, context=tuple(targets))
    except ValidationError as error:
        complaints = [_complaint(path, list(item["loc"]), item["msg"], item["type"]) for item in error.errors()]
        raise ManifestError(complaints[:_MAX_COMPLAINTS], hint=hint) from error


def _place(path: Path, complaint: Complaint) -> str:
    steps = "".join(f"{printable(str(step), 80)}: " for step in complaint.path)
    return f"{path}: {steps}{complaint.reason}" + (f", line {complaint.line}" if complaint.line else "")


def _list_keys(steps: Sequence[object]) -> list[str]:
    """Return the keys that are allowed at the last step of this path into the settings."""
    if len(steps) == 1:
        return list(Settings.model_fields)
    kinds = {2: SlurmClusters, 4: SlurmSettings}
    return [item.name for item in fields(SlurmContainer if steps[-2] == "container" else kinds.get(len(steps), SlurmSettings))]


def _complaint(path: Path, steps: list[object], reason: str, kind: str) -> str:
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        keys = _list_keys(steps)
        reason = f"unknown key.{suggest(str(steps[-1]), keys)} Known: {', '.join(keys)}"
    return f"{path}: {printable('.'.join(map(str, steps)), 80)}: {printable(reason.removeprefix('Value error, '))}"
