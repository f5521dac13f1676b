"""Show a Slurm cluster where the learner has an account: what was found there, and what jobs request by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpucourse.ui.tables import Block, Cell, Code, Column, Content, View, facts, name_column, number_column, table, text_column
from gpucourse.ui.views.doctor import list_findings, summarise_findings
from gpucourse.units import format_seconds

if TYPE_CHECKING:
    from gpucourse.labs.results import LoginReport
    from gpucourse.model.deployment import SlurmDeployment
    from gpucourse.model.slurm_facts import PartitionFacts


def describe_cluster(deployment: SlurmDeployment) -> list[Block]:
    """Show the partitions, what jobs request by default, and what the probe found on a compute node."""
    facts_, probe, settings = deployment.facts, deployment.probe, deployment.settings
    login = deployment.nodes[0].label if deployment.nodes else "this computer"
    accounting = "yes, by sacct" if facts_.has_sacct else "no: Slurm forgets a job a few minutes after it ends"
    other_accounts = [account for account in facts_.accounts if account != settings.account]
    account = settings.account + (
        f" (you also have: {', '.join(other_accounts)})" if other_accounts and settings.account else ""
    )
    place = f"{facts_.folder}/gpucourse-$USER" if facts_.folder else "~/.gpucourse"
    shared = " (the compute nodes have access to it)" if probe.state == "passed" else ""
    asks: list[tuple[str, Content]] = [
        ("with a GPU", _describe_request(deployment, 1)),
        ("without one", _describe_request(deployment, 0)),
        ("nodes", f"at most {deployment.run_nodes}, unless you type run --nodes N" if deployment.run_nodes else ""),
        ("account", account),
        ("setup", "; ".join(settings.setup)),
        ("python", _describe_python(deployment)),
        ("files", f"{place}{shared}"),
    ]
    return [
        facts(
            [
                ("cluster", f"{facts_.cluster or 'unnamed'}, Slurm {facts_.version or 'of an unknown version'}, by {login}"),
                ("accounting", accounting),
            ]
        ),
        _list_partitions(deployment),
        facts(asks, title="What a job requests"),
    ]


def login_report(report: LoginReport) -> View:
    """Show what `doctor` found on a cluster, and the settings to paste into gpucourse.yaml."""
    return View(
        title=f"What the course needs from the cluster at {report.login}",
        blocks=[*list_findings(report.findings), Code(report.settings, title="For gpucourse.yaml")],
        footer=[summarise_findings(report.findings)],
    )


def _list_partitions(deployment: SlurmDeployment) -> Block:
    rows: list[tuple[Content, ...]] = []
    accounts = (deployment.settings.account,) if deployment.settings.account else deployment.facts.accounts
    for partition in deployment.facts.partitions:
        is_open = partition.open and partition.admits(accounts)
        rows.append(
            (
                partition.name + ("*" if partition.default else ""),
                "none" if partition.max_s is None else format_seconds(partition.max_s),
                str(partition.nodes) if partition.usable == partition.nodes else f"{partition.usable} of {partition.nodes}",
                _describe_gpus(partition),
                "yes" if is_open else Cell(_explain_closed(partition), "warn"),
            )
        )
    columns: list[Column | str] = [
        name_column("partition"),
        number_column("limit"),
        number_column("nodes"),
        text_column("GPUs"),
        text_column("open to you"),
    ]
    return table(columns, rows)


def _describe_gpus(partition: PartitionFacts) -> Content:
    if not partition.gpus:
        return Cell("none", "dim")
    types = ", ".join(partition.gpu_types)
    return f"{partition.gpu_nodes} nodes, up to {partition.gpus} each{f': {types}' if types else ''}"


def _explain_closed(partition: PartitionFacts) -> str:
    if not partition.open:
        return "no: it is down"
    return f"no: only for {', '.join(partition.accounts[:4])}" if partition.accounts else "no"


def _describe_request(deployment: SlurmDeployment, gpus: int) -> str:
    """Return the options of a job with that many GPUs, as they are typed after sbatch."""
    flags = list(deployment.settings.flags(gpus=gpus))
    facts_, settings = deployment.facts, deployment.settings
    partition = facts_.choose_partition(gpus=gpus, gpu=settings.gpu if gpus else "", account=settings.account)
    if gpus and (partition is None or not partition.gpus):
        return "no partition that is open to you has a GPU"
    typed = facts_.find_partition(settings.partition) if gpus and settings.partition else None
    if partition is not None and typed is not None and not typed.gpus:
        return f"the partition {typed.name} has no GPU; use --partition {partition.name}"
    if partition is not None and not any(flag.startswith("--partition=") for flag in flags):
        flags.insert(0, f"--partition={partition.name}")
    return " ".join(flag for flag in flags if not flag.startswith("--account="))


def _describe_python(deployment: SlurmDeployment) -> str:
    probe, name = deployment.probe, deployment.write_job_python(deployment.settings)
    if not probe.torch:
        return name
    cuda = f" for CUDA {probe.cuda}" if probe.cuda else ", built for CPUs"
    gpu = f"; it sees {probe.gpu}" if probe.gpu else ""
    return f"{name} ({probe.version}) on {' and '.join(probe.nodes)}, with torch {probe.torch}{cuda}{gpu}"
