from __future__ import annotations

from dataclasses import replace

from gpucourse.labs.results import LoginReport
from gpucourse.model.cloud import Finding
from gpucourse.model.node import Inventory
from gpucourse.model.slurm_facts import ProbeFacts, SlurmFacts
from gpucourse.model.slurm_settings import SlurmSettings
from gpucourse.ui.render import render
from gpucourse.ui.tables import View
from gpucourse.ui.views.cluster import describe_cluster, login_report
from tests.unit.labs.slurm.test_deploy import FACTS, make_lab
from tests.unit.labs.slurm.test_facts import LOGIN

PROBE = ProbeFacts(state="passed", nodes=("a", "b"), python="python", version="3.12.1", torch="2.9", cuda="12.4", gpu="A100")


def test_describe_cluster_shows_what_a_job_asks_for() -> None:
    lab = make_lab(
        PROBE,
        settings=SlurmSettings(account="abc", gpu="a100", setup=("module load a", "module load b")),
        inventory=Inventory(stack="03-slurm", nodes=(LOGIN,)),
    )
    text = render(View(blocks=describe_cluster(lab)), width=110)
    for words in (
        "by me@uni",
        "no: Slurm forgets a job",
        "cpu*  ",
        "no: only for own",
        "no: it is down",
        "--partition=gpu --gres=gpu:a100:1",
        "--partition=cpu\n",
        "abc (you also have: dead)",
        "module load a; module load b",
        "python (3.12.1) on a and b, with torch 2.9 for CUDA 12.4; it sees A100",
        "~/.gpucourse (the compute nodes have access to it)",
    ):
        assert words in text
    on_cpus = replace(lab, settings=SlurmSettings(partition="cpu", account="abc"))
    assert "the partition cpu has no GPU; use --partition gpu" in render(View(blocks=describe_cluster(on_cpus)), width=110)
    without_gpus = replace(lab, facts=SlurmFacts(partitions=FACTS.partitions[:1], folder="/scratch/me"), probe=ProbeFacts())
    text = render(View(blocks=describe_cluster(without_gpus)), width=110)
    assert "no partition that is open to you has a GPU" in text
    assert "/scratch/me/gpucourse-$USER\n" in text


def test_login_report_shows_the_settings_to_paste() -> None:
    report = LoginReport(
        login="uni",
        findings=[Finding(what="account", state="missing", detail="none", mend="ask")],
        settings="slurm:\n  login: uni",
    )
    text = render(login_report(report), width=80)
    assert "slurm:\n  login: uni" in text
    assert "1 of 1 is missing" in text
