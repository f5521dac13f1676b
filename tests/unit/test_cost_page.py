"""What docs/cost-and-safety.md says about money is what the program would say, and so is the syllabus of README.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpucourse.cli.help import COMMANDS
from tests import cost_table

TESTS = Path(__file__).parents[1]
HELD_BY = {  # what the page says prevents it, and the tests that fail where it does not
    "You forget a lab over the weekend": "unit/terraform/test_deadline.py system/test_first_boot.py::killers_are_armed",
    "You walk away from a lab that still has hours": "unit/terraform/test_idle_agent.py",
    "A node hangs so badly that it cannot end itself": "unit/aws/test_schedule.py system/aws/test_fault_table.py",
    "A powered-off node goes on costing its disk": "system/test_terraform_aws.py unit/labs/aws/test_build.py::powering_off",
    "deploy fails half-way and leaves things behind": "system/aws/test_fault_table.py::a_fault_while_it_is_built",
    "gpucourse or Terraform is killed at the wrong moment": "system/aws/test_killed.py system/aws/test_taken_down.py",
    "You lose the workspace, or the laptop": "system/aws/test_money.py::after_a_lost_workspace",
    "destroy says done and something is left": "system/aws/test_destroy.py::every_region_that_was_used",
    "A spot request starts a machine again after you ended it": "system/aws/test_live_hour.py::from_the_question_to_the_sweep",
    "The address, the network or the storage costs more than the machine": "system/test_terraform_aws.py::nothing_that_bills",
    "A burstable head is billed for its bursts": "unit/aws/test_pricing.py::an_estimate_names_its_parts",
    "Prices in a table are old": "system/aws/test_deploy.py::a_source_for_every_price unit/aws/test_pricing.py::a_refresh",
    "Somebody else's things are removed": "unit/aws/test_policy.py::changed_only_where_it_is_ours unit/aws/test_removal.py",
    "A stranger logs in": "unit/aws/test_ingress.py::never_wider system/test_terraform_aws.py::keeps_a_secret",
}


def test_the_table_is_worked_out_from_the_manifests_and_the_shipped_prices() -> None:
    text = cost_table.PAGE.read_text(encoding="utf-8")
    assert cost_table.page_with(cost_table.table()) == text, "write it again: python -m tests.cost_table --write"


def test_the_syllabus_is_worked_out_from_the_manifests_and_the_rubric() -> None:
    text = cost_table.README.read_text(encoding="utf-8")
    made = cost_table.page_with(cost_table.syllabus(), cost_table.README)
    assert made == text, "write it again: python -m tests.cost_table --write"


def test_every_command_on_the_page_exists() -> None:
    text = cost_table.PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"gpucourse ([a-z-]+)", text)) - {"leaves"}
    commands = {name for name in named if re.search(rf"`gpucourse {name}|^gpucourse {name}", text, re.MULTILINE)}
    assert {"leaks", "cost", "destroy", "keep", "stop"} <= commands
    assert commands <= set(COMMANDS)


def read_dangers() -> list[str]:
    text = cost_table.PAGE.read_text(encoding="utf-8")
    section = text.partition("## What can go wrong with money")[2].partition("\n## ")[0]
    return [cell.replace("`", "").strip() for cell in re.findall(r"^\| ([^|]+) \| [^|]+ \| .+ \|$", section, re.MULTILINE)[1:]]


def test_every_danger_on_the_page_is_held_by_a_test() -> None:
    assert [*HELD_BY] == read_dangers()


@pytest.mark.parametrize("danger", HELD_BY)
def test_the_tests_that_hold_it_are_there(danger: str) -> None:
    for named in HELD_BY[danger].split():
        file, _, name = named.partition("::")
        text = (TESTS / file).read_text(encoding="utf-8")
        assert re.search(rf"def test_\w*{name}", text), named
