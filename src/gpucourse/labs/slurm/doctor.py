"""`doctor --target slurm`: query the login node of a cluster about everything that labs need. No job is submitted."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs.request import DeployRequest
from gpucourse.labs.results import LoginReport
from gpucourse.labs.slurm.deploy import check_names, enter_cluster, list_accounts, read_settings
from gpucourse.labs.slurm.facts import look
from gpucourse.model.cloud import Finding
from gpucourse.model.event import stage
from gpucourse.model.node import Node
from gpucourse.model.slurm_facts import PartitionFacts, SlurmFacts
from gpucourse.model.slurm_settings import SlurmSettings
from gpucourse.units import format_seconds


def examine(context: Context, request: DeployRequest) -> LoginReport:
    """Return what the cluster has and lacks, and the settings that fit it, as lines for gpucourse.yaml.

    Raises UsageError without a login, MissingError if the machine has no Slurm, UnreachableError, and InfrastructureError.
    """
    settings = read_settings(context, request)
    with stage(context.watch, "look", "examining the cluster"):
        node, fleet = enter_cluster(context, request, settings)
        with fleet:
            facts = look(fleet.link(node), settings)
    partition = facts.find_partition(settings.partition) or facts.choose_partition(
        gpus=1, gpu=settings.gpu, account=settings.account
    )
    account = settings.account or (next(iter(list_accounts(facts, partition) if partition else ()), ""))
    findings = [
        Finding(what="login", state="ok", detail=f"{node.label}, {node.python}"),
        Finding(what="Slurm", state="ok", detail=f"{facts.version or 'version unknown'}, cluster {facts.cluster or 'unnamed'}"),
        _check_request(settings, facts),
        _describe_partition(facts, partition),
        _describe_account(facts, account),
        _describe_accounting(facts),
        _describe_software(settings, facts),
        Finding(what="folder", state="ok", detail=facts.folder or "your home folder; a job proves that compute nodes see it"),
    ]
    lines = write_settings(node, settings, facts, partition, account)
    return LoginReport(login=node.label, findings=[finding for finding in findings if finding.detail], settings=lines)


def write_settings(
    node: Node, settings: SlurmSettings, facts: SlurmFacts, partition: PartitionFacts | None, account: str
) -> str:
    """Return the key `slurm` of gpucourse.yaml for this cluster. Keys that need no value are left out."""
    other = facts.choose_partition(gpus=0, account=account)
    module = next((name for name in facts.modules if "torch" in name.lower()), "")
    setup = list(settings.setup) or ([f"module load {module}"] if module else [])
    values = {
        "login": node.label,
        "partition": settings.partition or (partition.name if partition else ""),
        "cpu_partition": settings.cpu_partition or (other.name if other and other is not partition else ""),
        "account": account,
        "qos": settings.qos,
        "gpu": settings.gpu,
        "setup": f"[{', '.join(setup)}]" if setup else "",
        "folder": settings.folder,
    }
    return "\n".join(["slurm:", *(f"  {key}: {value}" for key, value in values.items() if value)])


def _check_request(settings: SlurmSettings, facts: SlurmFacts) -> Finding:
    try:
        check_names(settings, facts, "3", SlurmSettings(login=settings.login))
    except GpucourseError as error:
        return Finding(what="settings", state="missing", detail=error.what, mend=error.hint)
    return Finding(what="settings", state="ok", detail="")


def _describe_partition(facts: SlurmFacts, partition: PartitionFacts | None) -> Finding:
    if partition is None or not partition.gpus:
        names = ", ".join(partition.name for partition in facts.partitions)
        mend = "ask the administrator which partition has GPUs for you; without one, runs do not count as measured on a GPU"
        return Finding(what="GPUs", state="warning", detail=f"no partition that is open to you has one: {names}", mend=mend)
    limit = "without a time limit" if partition.max_s is None else f"at most {format_seconds(partition.max_s)}"
    types = f" ({', '.join(partition.gpu_types)})" if partition.gpu_types else ""
    detail = f"partition {partition.name}: {partition.gpu_nodes} nodes with up to {partition.gpus} GPUs{types}, {limit}"
    return Finding(what="GPUs", state="ok", detail=detail)


def _describe_account(facts: SlurmFacts, account: str) -> Finding:
    if not facts.accounts:
        if "associations" in facts.enforced:
            mend = "ask the administrator for an account: sacctmgr shows none for you"
            return Finding(what="account", state="missing", detail="Slurm accounting does not list you", mend=mend)
        return Finding(
            what="account", state="ok", detail="Slurm lists none for you; if the cluster requires one: account: NAME"
        )
    others = ", ".join(name for name in facts.accounts if name != account)
    return Finding(what="account", state="ok", detail=f"{account or facts.accounts[0]}{f' (also: {others})' if others else ''}")


def _describe_accounting(facts: SlurmFacts) -> Finding:
    if facts.has_sacct:
        return Finding(what="accounting", state="ok", detail="sacct answers")
    age = f" {format_seconds(float(facts.min_job_age_s))}" if facts.min_job_age_s else " some minutes"
    detail = f"sacct does not answer: Slurm forgets a job{age} after its end, and the hours of runs are not known"
    return Finding(what="accounting", state="warning", detail=detail, mend="none needed: runs work without it")


def _describe_software(settings: SlurmSettings, facts: SlurmFacts) -> Finding:
    if settings.setup or settings.python or settings.container:
        return Finding(what="torch", state="ok", detail="from your settings; gpucourse deploy tests it with a job")
    modules = [name for name in facts.modules if "torch" in name.lower()]
    if modules:
        return Finding(what="torch", state="ok", detail=f"environment modules: {', '.join(modules[:6])}")
    deploy = SlurmSettings(login=settings.login).write_command("3")
    mend = f"{deploy} --install creates an environment with torch on the cluster"
    return Finding(what="torch", state="warning", detail="no environment module is named after it", mend=mend)
