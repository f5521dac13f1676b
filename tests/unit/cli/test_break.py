from __future__ import annotations

from gpucourse.model.node import Inventory
from gpucourse.model.slurm_facts import ProbeFacts
from gpucourse.units import now_utc
from gpucourse.workspace import deployments
from tests.learning import Learning
from tests.unit.labs.slurm.test_deploy import make_lab
from tests.unit.labs.slurm.test_facts import LOGIN


def test_break_does_not_call_a_cluster_simulated(learning: Learning) -> None:
    inventory = Inventory(stack="01-slurm", nodes=(LOGIN,))
    lab = make_lab(ProbeFacts(), inventory=inventory)
    lab.stack, lab.module, lab.created, lab.updated = "01-slurm", "1", now_utc(), now_utc()
    deployments.save(learning.context.paths, lab)
    message = learning.types("break", "1.1", code=None).err
    assert "starts no ranks" in message
    assert "simulated nodes" not in message


def test_break_repaired_is_for_a_fault_in_the_code(learning: Learning) -> None:
    message = learning.types("break", "1.1", "--repaired", "--how", "kill-rank", code=2).err
    assert "--repaired is for a copy with a fault in its code, not for kill-rank" in message
    assert "gpucourse break 1.1 --repaired" in message
