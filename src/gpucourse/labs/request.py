"""The options that the learner typed after `deploy` and `doctor`, before any target has processed them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class DeployRequest:
    """The options that the learner typed after `deploy`.

    An option that is None or empty comes from the workspace's settings, otherwise from the module. Several GPUs mean several
    labs. A target refuses options that do not apply to it:

    `link`, `unpack_slurm`: only for simulated nodes.
    `gpu` to `over_budget`: only for labs that cost money. `gpu` is also for a Slurm cluster, as a type in its own words.
    `hosts` to `on_login_node`: only for machines that exist already. `trust` lists fingerprints of host keys that the learner
    trusts. `key` is also for a Slurm cluster.
    `login` to `install`: only for a Slurm cluster. `slurm` lists words such as `constraint=ib`.
    """

    module: str
    nodes: int | None = None
    target: str | None = None
    dry_run: bool = False
    link: str | None = None
    unpack_slurm: bool = False
    gpu: tuple[str, ...] = ()
    size: str | None = None
    spot: bool | None = None
    region: str | None = None
    ttl_s: float | None = None
    ssh_cidr: str = ""
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
    def command(self) -> str:
        """Return the command that was typed, without --dry-run."""
        words = ["gpucourse", "deploy", self.module, "--target", str(self.target)]
        for flag, value in (
            ("--nodes", self.nodes),
            ("--link", self.link),
            ("--hosts", ",".join(self.hosts)),
            ("--key", self.key),
            ("--gpu", ",".join(self.gpu)),
            ("--size", self.size),
            ("--region", self.region),
            ("--ttl", f"{self.ttl_s:g}s" if self.ttl_s is not None else None),
            ("--ssh-cidr", self.ssh_cidr),
            ("--login", self.login),
            ("--cluster", self.cluster),
            ("--partition", self.partition),
            ("--account", self.account),
            ("--qos", self.qos),
        ):
            words += [flag, str(value)] if value else []
        words += [] if self.spot is None else ["--spot" if self.spot else "--no-spot"]
        words += [word for fingerprint in self.trust for word in ("--trust", fingerprint)]
        words += [word for setting in self.slurm for word in ("--slurm", setting)]
        words += ["--install"] if self.install else []
        words += ["--on-login-node"] if self.on_login_node else []
        words += ["--unpack-slurm"] if self.unpack_slurm else []
        words += ["--yes-over-budget"] if self.over_budget else []
        return shlex.join(words)


@dataclass(frozen=True, kw_only=True)
class PreflightRequest:
    """The options that the learner typed after `doctor` for an account.

    An option that is None or empty comes from the settings; without a module, all modules count. Several GPUs mean several labs
    in parallel. `nodes` needs a `module`.
    """

    module: str | None = None
    gpu: tuple[str, ...] = ()
    nodes: int | None = None
    region: str | None = None
    spot: bool | None = None
    ssh_cidr: str = ""
