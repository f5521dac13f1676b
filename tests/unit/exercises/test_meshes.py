"""6.3 without ranks: which layouts are taken, what a rank holds and sends by formula, what crosses between nodes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_module("torch")
FOLDER = "06-training-at-scale"
ON_TWO_NODES = ["node0"] * 4 + ["node1"] * 4


@pytest.fixture(scope="module")
def report() -> ModuleType:
    return beside_the_script(FOLDER, "mesh_report")


@pytest.fixture(scope="module")
def model(report: ModuleType) -> ModuleType:
    return sys.modules[report.Layout.__module__]


@pytest.fixture(scope="module")
def traffic(report: ModuleType) -> ModuleType:
    return sys.modules[report.price_by_dimension.__module__]


@pytest.fixture
def shape(model: ModuleType) -> Any:
    """As 6.3 comes on simulated nodes."""
    return model.Shape(layers=4, width=64, heads=4, length=32, batch_size=16, micro_batches=4, steps=4)


@pytest.mark.parametrize(
    ("ranks", "layouts"),
    [
        (2, ["1x1x2", "2x1x1", "1x2x1"]),
        (4, ["1x2x2", "1x1x4", "4x1x1"]),
        (8, ["2x2x2", "1x2x4", "4x1x2"]),
        (3, ["1x3x1"]),
        (7, []),
    ],
)
def test_layouts_that_are_taken(report: ModuleType, shape: Any, ranks: int, layouts: list[str]) -> None:
    assert list(map(str, report.suggest_layouts(ranks, shape))) == layouts
    assert report.choose_layouts("auto", ranks, shape)[1] == []


def test_a_layout_that_cannot_be_is_left_out_with_its_rule(report: ModuleType, shape: Any) -> None:
    layouts, rejections = report.choose_layouts("2x2x2,2x2x2, 8x1x1,1x1x8,1x8x1,2x2x1", 8, shape)
    assert list(map(str, layouts)) == ["2x2x2"]
    assert rejections == [
        "8x1x1 is left out: 16 sequences cannot be split among 8 copies in 4 micro-batches: batch_size must be a multiple of "
        "dp x micro_batches, 32",
        "1x1x8 is left out: tp 8 does not divide the 4 heads: a slice consists of whole heads",
        "1x8x1 is left out: pp 8 is more stages than the model has layers (4)",
        "2x2x1 is left out: it takes 4 ranks, but there are 8",
    ]


def test_ranks_without_a_layout_are_refused_with_the_way_out(report: ModuleType, shape: Any) -> None:
    assert report.find_refusal([], [], 1, shape).endswith(
        "take two nodes (gpucourse deploy 6 --nodes 2), or --set ranks_per_node=4"
    )
    refusal = report.find_refusal([], ["8x1x1 is left out: why"], 8, shape)
    assert refusal == "no layout is left: 8x1x1 is left out: why; with 8 ranks take 2x2x2, 1x2x4, 4x1x2"
    assert report.find_refusal([], [], 7, shape) == "no layout is left: no layout of 7 ranks can take this model and batch"
    assert report.find_refusal(report.suggest_layouts(8, shape), [], 8, shape) is None


@pytest.mark.parametrize("text", ["", "2x2", "2x2x0", "2x2x-1", "axbxc", "2x2x2,", "1.5x1x1", "²x1x1"])
def test_what_is_no_layout_is_named(report: ModuleType, text: str) -> None:
    with pytest.raises(ValueError, match=r"^.{0,7}$"):
        report.parse_layouts(text)


def test_a_stage_holds_the_numbers_of_the_formula(model: ModuleType, shape: Any) -> None:
    whole = sum(weight.numel() for weight in shape.build().parameters())
    for stages in (1, 2, 3):
        layout = model.Layout(1, stages, 1)
        counts = [model.count_weights(shape, layout, stage) for stage in range(stages)]
        assert sum(counts) == whole
        shares = [shape.share_layers(stages, stage) for stage in range(stages)]
        assert [layer for share in shares for layer in share] == list(range(shape.layers))
        for stage, share in enumerate(shares):
            part = model.Stage(shape.build(), share, first=stage == 0, last=stage == stages - 1)
            assert sum(weight.numel() for weight in part.parameters()) == counts[stage]
            assert dict(part.named_parameters()).keys() <= dict(shape.build().named_parameters()).keys()


def test_the_bytes_of_the_lesson(model: ModuleType, traffic: ModuleType, shape: Any) -> None:
    layout = model.Layout(2, 2, 2)
    first, last = (traffic.predict_message_bytes(shape, layout, stage) for stage in (0, 1))
    assert first == {"dp": 226_048, "pp forward": 65_536, "pp back": 0, "tp": 524_288, "other": 0}
    assert last == {"dp": 218_624, "pp forward": 0, "pp back": 65_536, "tp": 524_288, "other": 0}
    alone = traffic.predict_message_bytes(shape, model.Layout(1, 1, 1), 0)
    assert set(alone.values()) == {0}


@pytest.mark.parametrize(
    ("slowest", "crossing"),
    [
        ("tp", {"dp": 0, "pp": 0, "tp": 4_194_304}),
        ("dp", {"dp": 1_778_688, "pp": 0, "tp": 0}),
        ("pp", {"dp": 0, "pp": 524_288, "tp": 0}),
    ],
)
def test_what_crosses_is_what_varies_slowest(
    model: ModuleType, traffic: ModuleType, shape: Any, slowest: str, crossing: dict[str, int]
) -> None:
    layout = model.Layout(2, 2, 2)
    order = (slowest, *(name for name in ("dp", "pp", "tp") if name != slowest))
    mesh = model.lay_out(layout, order)
    stages = {
        rank: place[1] for place in [(d, p, t) for d in (0, 1) for p in (0, 1) for t in (0, 1)] for rank in [mesh[place].item()]
    }
    sizes = [traffic.predict_message_bytes(shape, layout, stages[rank]) for rank in range(8)]
    assert traffic.price_by_dimension(mesh, ON_TWO_NODES, sizes) == crossing
    assert sum(traffic.price_by_dimension(mesh, ["node0"] * 8, sizes).values()) == 0


def test_a_mesh_by_node_as_text(report: ModuleType, model: ModuleType) -> None:
    mesh = model.lay_out(model.Layout(1, 2, 2), ("tp", "pp", "dp"))
    assert report.draw_mesh("1x2x2", mesh, ["left", "left", "right", "right"]) == (
        "1x2x2\n"
        "  left\n"
        "    rank 0   copy 0   stage 0   slice 0\n"
        "    rank 1   copy 0   stage 1   slice 0\n"
        "  right\n"
        "    rank 2   copy 0   stage 0   slice 1\n"
        "    rank 3   copy 0   stage 1   slice 1\n"
    )
    assert report.count_spread_groups(mesh, ["left", "left", "right", "right"]) == 2
    assert report.count_spread_groups(mesh, ["left"] * 4) == 0
    assert report.list_groups(mesh, "tp") == [[0, 2], [1, 3]]


def test_the_longest_part_is_the_bottleneck(report: ModuleType) -> None:
    assert report.find_bottleneck({"computing": 3.0, "bubble": 4.5, "tp messages": 4.0}) == "bubble"


@pytest.fixture
def choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: ModuleType) -> Callable[[str], Any]:
    """What a my_mesh.py with this text says."""
    choice = beside_the_script(FOLDER, "mesh_choice")

    def choose(text: str) -> Any:
        (tmp_path / "my_mesh.py").write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "my_mesh", raising=False)
        return choice.Choice()

    return choose


WRITTEN = (Path(__file__).parents[3] / "exercises" / FOLDER / "solutions" / "my_mesh.py").read_text(encoding="utf-8")


def test_a_part_as_delivered_says_nothing(choose: Callable[[str], Any], model: ModuleType) -> None:
    delivered = Path(__file__).parents[3] / "exercises" / FOLDER / "my_mesh.py"
    choice = choose(delivered.read_text(encoding="utf-8"))
    assert (choice.order, choice.place_ranks(model.Layout(2, 2, 2)), choice.broken) == (("tp", "pp", "dp"), None, "")


def test_a_part_that_is_written_lays_out_the_mesh(
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
    ("old", "new", "broken"),
    [
        ("return place\n", "return {name: 0 for name in order}\n", "coordinates gives {'pp': 0, 'dp': 0, 'tp': 0} for rank 1"),
        ("return place\n", "return 7\n", "coordinates gives 7 for rank 0"),
        (
            "reversed(order)",
            "order",
            "coordinates gives {'pp': 1, 'dp': 0, 'tp': 0} for rank 1 of 2x2x2, which ORDER puts elsewhere",
        ),
        ("return place\n", "return place[rank]\n", "KeyError: 0"),
        ('("pp", "dp", "tp")', '("pp", "tp")', "ORDER is ('pp', 'tp'): it must hold each of dp, pp and tp once"),
        ("import itertools", "import no_such_module_here", "ModuleNotFoundError: No module named 'no_such_module_here'"),
    ],
)
def test_a_part_that_fails_is_told_and_ends_nothing(
    choose: Callable[[str], Any], model: ModuleType, old: str, new: str, broken: str
) -> None:
    choice = choose(WRITTEN.replace(old, new, 1))
    assert choice.place_ranks(model.Layout(2, 2, 2)) is None
    assert choice.broken.startswith(broken)


def test_groups_that_are_not_those_of_the_mesh_are_counted(choose: Callable[[str], Any], model: ModuleType) -> None:
    layout = model.Layout(2, 2, 2)
    choice = choose(WRITTEN.replace("return list(by_rest.values())", "return list(by_rest.values())[1:]"))
    assert choice.count_wrong_groups(layout, choice.place_ranks(layout)) == 3
