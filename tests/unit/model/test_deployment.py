from __future__ import annotations

from dataclasses import replace

from gpucourse.model.deployment import AwsDeployment, Deployment, SlurmDeployment, deployment_class
from gpucourse.model.node import Inventory
from gpucourse.model.slurm_facts import ProbeFacts
from gpucourse.model.slurm_settings import SlurmContainer, SlurmSettings
from tests.unit.ui.examples import aws_deployment, deployment


def test_deployment_is_up_while_it_has_nodes_that_can_be_used() -> None:
    assert [deployment(phase=phase).up for phase in ("ready", "failed", "creating", "destroying")] == [True, True, False, False]
    assert not deployment(inventory=None).up
    stopped_lab = aws_deployment()
    stopped_lab.cloud.stopped = True
    assert (stopped_lab.is_stopped, stopped_lab.up) == (True, False)


def test_deployment_is_simulated_if_one_of_its_nodes_is() -> None:
    local = deployment(inventory=None)
    assert (local.is_simulated, local.mode) == (True, "local"), "before a node exists"
    cloud = aws_deployment()
    assert cloud.inventory is not None
    nodes = cloud.inventory.nodes
    cloud.inventory = Inventory(stack=cloud.stack, nodes=tuple(replace(node, mode="aws") for node in nodes))
    assert (cloud.is_simulated, cloud.mode) == (False, "aws")
    cloud.inventory = Inventory(stack=cloud.stack, nodes=(*cloud.inventory.nodes[1:], nodes[0]))
    assert (cloud.is_simulated, cloud.mode) == (True, "local")


def test_deployment_class_of_an_unknown_target_is_the_common_one() -> None:
    assert deployment_class("aws") is AwsDeployment
    assert deployment_class("moon") is deployment_class(7) is Deployment


def test_slurm_deployment_names_the_python_of_jobs_and_the_comment() -> None:
    lab = SlurmDeployment(
        stack="03-slurm", uid="u1", module="3", template="slurm", phase="ready", created="", updated="", nodes_wanted=1
    )
    assert (lab.comment, lab.write_job_python(lab.settings), lab.runs_as_jobs) == ("gpucourse-u1", "", True)
    lab.probe = ProbeFacts(state="passed", python="python3")
    assert lab.write_job_python(lab.settings) == "python3"
    lab.environment = "/scratch/me/.gpucourse/venv"
    assert lab.write_job_python(lab.settings) == "/scratch/me/.gpucourse/venv/bin/python"
    assert lab.write_job_python(SlurmSettings(container=SlurmContainer(apptainer="a.sif"))) == "python", "the container's own"
    lab.settings = SlurmSettings(python="apptainer exec a.sif python")
    assert lab.write_job_python(lab.settings) == "apptainer exec a.sif python"
