"""6.3 with real ranks: as it is delivered, with the part written, and with faults of a mesh, each found by its check."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.exercising import (
    check_plots_and_tables,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    run_solved,
    with_faults,
)

pytestmark = [pytest.mark.system, needs_torch]
SMALL = {"width": "16", "heads": "2", "length": "8", "batch_size": "8", "micro_batches": "2", "steps": "3"}
OF_YOUR_MESH = {"mesh-made", "groups-right", "crossing-predicted"}


@pytest.mark.slow
def test_eight_ranks_train_as_one_process_does(tmp_path: Path) -> None:
    run = with_faults("6.3", tmp_path / "work", ranks_per_node="8")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == set()
    assert set(list_unanswered(run)) == OF_YOUR_MESH
    rows = {row["layout"]: row for row in run.metrics["layouts"]}
    assert set(rows) == {"2x2x2", "1x2x4", "4x1x2"}
    assert [rows["2x2x2"][f"{name}_bytes"] for name in ("tp", "pp", "dp")] == [524_288, 65_536, 226_048]
    assert rows["4x1x2"]["bubble_predicted_percent"] == 0
    assert rows["2x2x2"]["bubble_predicted_percent"] == pytest.approx(20)
    assert all(row["tokens_per_s"] == pytest.approx(512 / row["median_ms"] * 1e3, rel=1e-4) for row in rows.values())
    mesh = (tmp_path / "work" / "mesh.txt").read_text(encoding="utf-8")
    assert mesh.startswith("order, slowest first: tp, pp, dp\n\ndp x pp x tp = 2x2x2\n  node0\n    rank 0   copy 0   stage 0")
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
def test_a_written_part_makes_the_mesh_and_predicts_the_bytes(tmp_path: Path) -> None:
    # the second half of the ranks says that it is on another node
    other_node = ("three_dimensions.py", "bench.node_label()", 'f"node{2 * rank // size}"')
    run = run_solved("6.3", tmp_path / "work", "my_mesh.py", changes=[other_node], **SMALL)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"all-nodes"}, "the plan has one node"
    assert set(list_unanswered(run)) == {"all-nodes"}
    assert run.metrics["order"] == "pp, dp, tp"
    first = run.metrics["layouts"][0]
    assert first["cross_node_bytes"] == first["cross_by_yours"] == first["cross_pp_bytes"] > 0
    assert run.metrics["worst_order_times"] > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "layouts", "checks"),
    [
        (("layouts.py", "    bucket /= copies.size()\n", ""), "2x1x2,2x2x1,4x1x1", {"equal", "weights-equal"}),
        (
            ("mesh_model.py", '    "mlp.up": ColwiseParallel(), "mlp.down": RowwiseParallel(),\n', ""),
            "1x1x2,2x1x1,1x2x1",
            {"weights-by-formula", "bytes-by-formula"},
        ),
        (
            ("mesh_model.py", "self.layers * stage // stages, ", "max(0, self.layers * stage // stages - 1), "),
            "1x2x1,2x1x1,1x1x2",
            {"all-layers", "equal", "weights-equal"},
        ),
    ],
    ids=["a sum for an average", "half a plan", "a layer twice"],
)
def test_a_fault_of_a_layout_is_found(fault: tuple[str, str, str], layouts: str, checks: set[str], tmp_path: Path) -> None:
    ranks = "4" if "4x" in layouts else "2"
    run = with_faults("6.3", tmp_path / "work", fault, layouts=layouts, layers="2", ranks_per_node=ranks, **SMALL)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == checks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "code", "sentence"),
    [
        ({"ranks_per_node": "1"}, 1, "one rank has nothing to divide: take two nodes (gpucourse deploy 6 --nodes 2)"),
        (
            {"layouts": "2x2x2"},
            1,
            "no layout is left: 2x2x2 is left out: it takes 8 ranks, but there are 2; with 2 ranks take 1x1x2,",
        ),
        ({"layouts": "2by2"}, 2, "--layouts must be auto, or numbers such as 2x2x2,1x2x4 (dp x pp x tp), not 2by2"),
        ({"heads": "3"}, 2, "--width must be a multiple of --heads: 3 heads cannot share 16 units"),
        ({"batch_size": "7"}, 2, "--batch-size must be a multiple of --micro-batches"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(settings: dict[str, str], code: int, sentence: str, tmp_path: Path) -> None:
    run = with_faults("6.3", tmp_path / "work", **SMALL | {"ranks_per_node": "2"} | settings)
    assert (run.code, run.metrics) == (code, {})
    assert sentence in run.output
    assert "Traceback" not in run.output
