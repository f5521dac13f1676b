"""The learner's my_mesh.py as 6.3 uses it: the mesh that it lays out, and what is said if it fails."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script
from tests.unit.exercises.test_mesh_report import FOLDER, model, report, shape, traffic

pytestmark = needs_module("torch")
__all__ = ["model", "report", "shape", "traffic"]  # the fixtures


@pytest.fixture
def choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: ModuleType) -> Callable[[str], Any]:
    """Return what a my_mesh.py with this text says."""
    choice = beside_the_script(FOLDER, "mesh_choice")

    def choose(text: str) -> Any:
        (tmp_path / "my_mesh.py").write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "my_mesh", raising=False)
        return choice.Choice()

    return choose


WRITTEN = (Path(__file__).parents[3] / "exercises" / FOLDER / "solutions" / "my_mesh.py").read_text(encoding="utf-8")


def test_choice_of_a_part_as_delivered_is_the_default(choose: Callable[[str], Any], model: ModuleType) -> None:
    delivered = Path(__file__).parents[3] / "exercises" / FOLDER / "my_mesh.py"
    choice = choose(delivered.read_text(encoding="utf-8"))
    assert (choice.order, choice.place_ranks(model.Layout(2, 2, 2)), choice.broken) == (("tp", "pp", "dp"), None, "")


def test_choice_of_a_written_part_lays_out_the_mesh(
    choose: Callable[[str], Any], model: ModuleType, traffic: ModuleType, shape: Any
) -> None:
    choice, layout = choose(WRITTEN), model.Layout(2, 2, 2)
    mesh = choice.place_ranks(layout)
    assert mesh.equal(model.lay_out(layout, ("pp", "dp", "tp")))
    assert choice.count_wrong_groups(layout, mesh) == 0
    sizes = [traffic.predict_message_bytes(shape, layout, stage) for stage in (0, 1)]
    assert choice.predict_bytes(layout, 4, sizes) == 524_288
    assert choice.broken == ""


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            "return place\n",
            "return {name: 0 for name in order}\n",
            "coordinates returns {'pp': 0, 'dp': 0, 'tp': 0} for rank 1",
        ),
        (
            "reversed(order)",
            "order",
            "coordinates returns {'pp': 1, 'dp': 0, 'tp': 0} for rank 1 of 2x2x2, which ORDER puts elsewhere",
        ),
        ('("pp", "dp", "tp")', '("pp", "tp")', "ORDER is ('pp', 'tp'): it must hold each of dp, pp and tp once"),
        ("import itertools", "import no_such_module_here", "ModuleNotFoundError: No module named 'no_such_module_here'"),
    ],
)
def test_choice_says_how_a_part_fails(choose: Callable[[str], Any], model: ModuleType, old: str, new: str, fault: str) -> None:
    choice = choose(WRITTEN.replace(old, new, 1))
    assert choice.place_ranks(model.Layout(2, 2, 2)) is None
    assert choice.broken.startswith(fault)


def test_choice_counts_groups_that_are_not_of_the_mesh(choose: Callable[[str], Any], model: ModuleType) -> None:
    layout = model.Layout(2, 2, 2)
    choice = choose(WRITTEN.replace("return list(by_rest.values())", "return list(by_rest.values())[1:]"))
    assert choice.count_wrong_groups(layout, choice.place_ranks(layout)) == 3


@pytest.mark.parametrize(("body", "yours", "is_right", "error"), [
    ('raise NotImplementedError("open")', None, None, ""), ("return 8", 8, False, ""),
    ("return 1 / 0", None, None, "ZeroDivisionError"),
])  # fmt: skip
def test_ask_limits_of_a_part(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    report: ModuleType,
    body: str,
    yours: int | None,
    is_right: object,
    error: str,
) -> None:
    assert report is not None
    (tmp_path / "my_limits.py").write_text(f"def largest(way, cluster):\n    {body}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_limits", raising=False)
    rows, text = beside_the_script(FOLDER, "mesh_choice").ask_limits()
    assert (rows[0]["yours"], rows[0]["is_right"]) == (yours, is_right)
    assert text.startswith(error)
    assert bool(text) == bool(error)
