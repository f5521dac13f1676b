"""`gpucourse.yaml`: what the learner set. Strict, since a person writes it; complaints name the file, the key, the reason."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gpucourse.errors import ManifestError
from gpucourse.model.fields import Bytes, Seconds
from gpucourse.model.labs import GPU

Target = Literal["local", "aws", "hosts"]


class Settings(BaseModel):
    """The settings of one workspace, with the defaults of a new one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: Target = "local"
    rendezvous_ports: str = "29500-29599"
    region: str = Field(default="us-east-2", pattern=r"^[a-z]{2}(-[a-z]+)+-\d$", description="the AWS region of new labs")
    gpu: GPU | None = Field(default=None, description="the GPU of new labs, where the module's own choice is not wanted")
    other_gpus: tuple[GPU, ...] = Field(default=(), description="GPUs to take where the wanted one is sold out, best first")
    spot: bool = Field(default=False, description="spot instances: cheaper, and taken back at two minutes' notice")
    ttl: Seconds = Field(default=4 * 3600.0, description="how long a lab lives before it ends itself: 4h")
    budget_usd: Decimal | None = Field(default=None, ge=0, description="what the course may cost in all, in USD")
    owner: str = Field(default="", max_length=64, description="who pays, as a tag of every resource; your login by default")
    ssh_cidr: str = Field(
        default="", description="the address that may log in, as 203.0.113.7/32; asked of the internet by default"
    )
    ssh_proxy_command: str = Field(default="", description="how SSH reaches cloud nodes and hosts, as OpenSSH's ProxyCommand")
    node_python: str = Field(
        default="", description="the interpreter on cloud nodes and hosts that has torch; the stack's by default"
    )
    shared_folder: str = Field(
        default="", description="on a cluster that exists already: a folder that all its machines share, where homes are not"
    )
    log_limit: Bytes = Field(default=1 << 30, ge=1 << 10, description="how much of each rank's log is kept: 1 GiB")
    hosts: tuple[str, ...] = Field(default=(), description="machines that exist already, for the target hosts: user@name:port")

    @field_validator("rendezvous_ports")
    @classmethod
    def _range(cls, value: str) -> str:
        first, _, last = value.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal() and 1024 <= int(first) <= int(last or first) <= 65535):
            raise ValueError("must be a range of ports between 1024 and 65535, such as 29500-29599")
        return value

    @property
    def ports(self) -> tuple[int, int]:
        """The first and the last port that ranks may meet at."""
        first, _, last = self.rendezvous_ports.partition("-")
        return int(first), int(last or first)


def read_settings(path: Path) -> Settings:
    """The settings at `path`, or the defaults where there is no file. Raises ManifestError with every complaint."""
    hint = f"mend {path}, or delete it to get the defaults back"
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except UnicodeDecodeError as error:
        raise ManifestError([f"{path}: not UTF-8 text: {error.reason} at byte {error.start}"], hint=hint) from error
    except yaml.YAMLError as error:
        raise ManifestError([f"{path}: not YAML: {' '.join(str(error).split())}"], hint=hint) from error
    if found is None:
        return Settings()
    if not isinstance(found, dict):
        raise ManifestError([f"{path}: must hold keys and values, not a {type(found).__name__}"], hint=hint)
    try:
        return Settings.model_validate(found)
    except ValidationError as error:
        complaints = [_complaint(path, list(item["loc"]), item["msg"], item["type"]) for item in error.errors()]
        raise ManifestError(complaints, hint=hint) from error


def _complaint(path: Path, where: list[object], reason: str, kind: str) -> str:
    if kind == "extra_forbidden":
        reason = f"unknown key; known: {', '.join(Settings.model_fields)}"
    return f"{path}: {'.'.join(map(str, where))}: {reason.removeprefix('Value error, ')}"
