"""Records of labs on any target, and of a run that is on one."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.model.deployment import Deployment, HostsDeployment
from gpucourse.model.node import Inventory, Node
from gpucourse.model.record import RunRecord
from gpucourse.model.slurm import LaterJob, SlurmRun
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, runs


def record(context: Context, kind: type[Deployment], target: str) -> Deployment:
    """Return the record of a lab of module 3, stored."""
    now = now_utc()
    lab = kind(
        stack=f"03-{target}", uid="u", module="3", target=target, template="t", phase="ready", created=now, updated=now,
        nodes_wanted=1,
    )  # fmt: skip
    deployments.save(context.paths, lab)
    return lab


GONE = Node(
    name="node0", role="head", address="127.0.0.1", port=1, private_address="", user="me", gpus=0, instance_type="",
    python="/usr/bin/python3", mode="hosts", host_key="ssh-ed25519 AAAA", typed="me@gpu1",
)  # fmt: skip


def make_hosts_lab() -> HostsDeployment:
    now = now_utc()
    return HostsDeployment(
        stack="01-hosts", uid="c0ffee-2", module="1", template="hosts", phase="ready", created=now, updated=now,
        nodes_wanted=1, inventory=Inventory(stack="01-hosts", nodes=(GONE,)),
    )  # fmt: skip


def save_slurm_run(context: Context, later_jobs: list[LaterJob]) -> RunRecord:
    record = RunRecord(
        id="20261122-120000-aa", exercise="1.1", module="1", stack="01-hosts", mode="hosts", launcher="slurm",
        state="succeeded", created=now_utc(), ended=now_utc(), nodes=["node0"], collected=True,
        slurm=SlurmRun(partition="gpu", nodes=1, gpus=0, later=later_jobs),
    )  # fmt: skip
    runs.files_of(context.paths, record).folder.mkdir(parents=True)
    runs.save(context.paths, record)
    return record
