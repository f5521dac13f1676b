"""The options that the learner typed after `deploy` and `doctor`, before any target has processed them."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path

from gpucourse.units import write_duration

_OTHER_FLAGS = {"ttl_s": "--ttl", "over_budget": "--yes-over-budget"}
_REPEATED = {"--trust", "--slurm"}


@dataclass(frozen=True, kw_only=True)
class DeployRequest:
    """The options that the learner typed after `deploy`.

    An option that is None or empty comes from the workspace's settings, otherwise from the module. Several GPUs mean several
    labs. A target refuses options that do not apply to it.

    `link`, `unpack_slurm`: only for simulated nodes.
    `gpu` to `over_budget`: only for labs that cost money. `gpu` also chooses a GPU type of a Slurm cluster, by the cluster's
    name for the type.
    `hosts` to `on_login_node`: only for machines that exist already. `key` is also for a Slurm cluster.
    `trust`: the fingerprints of host keys that the learner trusts.
    `login` to `install`: only for a Slurm cluster.
    `slurm`: words such as `constraint=ib`.
    """

    module: str
    nodes: int | None = None
    target: str | None = None
    dry_run: bool = False
    link: str | None = None
    unpack_slurm: bool = False
    gpu: tuple[str, ...] = ()
    size: str | None = None
    region: str | None = None
    ttl_s: float | None = None
    ssh_cidr: str = ""
    spot: bool | None = None
    over_budget: bool = False
    hosts: tuple[str, ...] = ()
    key: Path | None = None
    trust: tuple[str, ...] = ()
    on_login_node: bool = False
    login: str = ""
    cluster: str = ""
    partition: str = ""
    account: str = ""
    qos: str = ""
    slurm: tuple[str, ...] = ()
    install: bool = False

    @property
    def flags(self) -> dict[str, list[str]]:
        """Return each flag that was typed, except --target and --dry-run, with the words to type it again."""
        return list_flags(self, without={"module", "target", "dry_run"})

    @property
    def command(self) -> str:
        """Return the command that was typed, without --dry-run."""
        words = [word for words in self.flags.values() for word in words]
        return shlex.join(["gpucourse", "deploy", self.module, "--target", str(self.target), *words])


@dataclass(frozen=True, kw_only=True)
class PreflightRequest:
    """The options that the learner typed after `doctor` for an account.

    An option that is None or empty comes from the settings; without a module, all modules count. Several GPUs mean several labs
    in parallel. `nodes` needs a `module`.
    """

    module: str | None = None
    region: str | None = None
    gpu: tuple[str, ...] = ()
    nodes: int | None = None
    spot: bool | None = None
    ssh_cidr: str = ""


def list_flags(request: DeployRequest | PreflightRequest, *, without: Collection[str]) -> dict[str, list[str]]:
    """Return each flag that was typed, with the words to type it again. `without`: the fields to leave out."""
    flags = {}
    for item in fields(request):
        value = getattr(request, item.name)
        is_typed = value is not None if item.name == "spot" else bool(value)
        if is_typed and item.name not in without:
            flag = _OTHER_FLAGS.get(item.name, f"--{item.name.replace('_', '-')}")
            flags[flag] = _spell(flag, value)
    return flags


def _spell(flag: str, value: object) -> list[str]:
    if isinstance(value, bool):
        return [flag if value else "--no-spot"]
    if isinstance(value, tuple):
        return [word for item in value for word in (flag, item)] if flag in _REPEATED else [flag, ",".join(value)]
    return [flag, write_duration(value) if flag == "--ttl" and isinstance(value, int | float) else str(value)]
