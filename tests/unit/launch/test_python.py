from __future__ import annotations

from tests.unit.launch.test_planning import make_plan, node


def test_start_sets_the_rank_variables_itself() -> None:
    plan = make_plan(node(0), node(1), launcher="python")
    assert plan.commands[1].argv == ("{rank}", "/opt/py/bin/python", "-u", "ddp.py")
    env = plan.commands[1].env
    assert (env["RANK"], env["WORLD_SIZE"], env["MASTER_ADDR"], env["MASTER_PORT"]) == ("1", "2", "10.0.0.0", "29501")
