from __future__ import annotations

from pathlib import Path

from gpucourse.labs.results import DeployResult
from gpucourse.labs.status import StackStatus
from gpucourse.model.deployment import Leftover, Receipt
from gpucourse.ui.views import deployed, lab, status
from tests.unit.ui.examples import deployment, text


def test_deploy_plan_and_deploy_result(tmp_path: Path) -> None:
    changes = [("create", "terraform_data.node[0]"), ("replace", "terraform_data.node[1]")]
    result = DeployResult(
        deployment=deployment(), changes=changes, dry_run=True, seconds=1.0, healed=["terraform_data.node[1]"]
    )
    page = text(lab.deploy_plan(result))
    assert "+    create   terraform_data.node[0]" in page
    assert "1 to create, 1 to replace." in page
    output = text(deployed.deploy_result(result, tmp_path / "ssh_config", "gpucourse run 3.1"))
    assert "2 ready in 1.00 s (2 changes, 1 repaired)" in output
    assert output.splitlines()[-1] == "Next: gpucourse run 3.1"
    assert len(output.splitlines()) <= 8
    assert "m3-local" not in output
    assert "m3-local" in text(deployed.deploy_result(result, tmp_path / "ssh_config", "gpucourse run 3.1", whole=True))
    nothing = DeployResult(deployment=deployment(), changes=[], dry_run=True, seconds=1.0, healed=[])
    page = text(lab.deploy_plan(nothing, "gpucourse run 3.1"))
    assert "nothing to do.\n\nNo lab was changed.\nNext: gpucourse run 3.1\n" in page
    assert "nothing to change" in text(deployed.deploy_result(nothing, tmp_path))


def test_lab_shows_what_it_lacks_in_every_view(tmp_path: Path) -> None:
    poor = deployment(lacks="All nodes are this one computer. For machines: sudo make it so")
    result = DeployResult(deployment=poor, changes=[], dry_run=False, seconds=1.0, healed=[])
    for view in (
        lab.deploy_plan(result),
        deployed.deploy_result(result, tmp_path),
        status.status([StackStatus(deployment=poor, nodes=[], active_runs=[])]),
    ):
        assert "All nodes are this one computer. For machines: sudo make it so" in text(view)


def receipt(*leftover: Leftover) -> Receipt:
    return Receipt(
        stack="m3-local", uid="u", module="3", mode="local", created="2026-11-21T10:00:00+00:00",
        destroyed="2026-11-21T11:00:00+00:00", existed=["a", "b"], removed=["a", "b"], swept=["processes: none"],
        leftovers=list(leftover), outputs_home=["r1"], outputs_discarded=["r2"],
    )  # fmt: skip


def test_destroy_result_proves_that_nothing_is_left() -> None:
    output = text(lab.destroy_result([receipt()], Path("/w/receipts")))
    assert output == (
        "✓ m3-local: 2 of 2 resources removed, outputs collected from 1 run; outputs discarded: r2; nothing is left\n"
        "\n"
        "Receipts: /w/receipts\n"
    )
    assert len(output.splitlines()) <= 8
    whole = text(lab.destroy_result([receipt()], Path("/w/receipts"), whole=True))
    for words in ("2 of 2 resources", "collected from 1 run", "✓ nothing is left", "2026-11-21T10:00:00", "processes: none"):
        assert words in whole
    assert "nothing to destroy" in text(lab.destroy_result([]))
    assert "gpucourse leaks" in text(lab.destroy_result([]))


def test_destroy_result_says_what_is_left_and_how_to_remove_it() -> None:
    output = text(lab.destroy_result([receipt(Leftover(kind="process", id="123", remove="kill 123"))]))
    for words in ("✗ 1 thing left", "process  123", "\nkill 123\n"):
        assert words in output
