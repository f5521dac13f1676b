"""6.3 without ranks: which layouts are taken, what a rank holds and sends by formula, what crosses between nodes."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from tests.course import CATALOG
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
def test_suggest_layouts_by_number_of_ranks(report: ModuleType, shape: Any, ranks: int, layouts: list[str]) -> None:
    assert list(map(str, report.suggest_layouts(ranks, shape))) == layouts
    assert report.choose_layouts("auto", ranks, shape)[1] == []


def test_choose_layouts_leaves_out_what_breaks_a_rule(report: ModuleType, shape: Any) -> None:
    layouts, rejections = report.choose_layouts("2x2x2,2x2x2, 8x1x1,1x1x8,1x8x1,2x2x1", 8, shape)
    assert list(map(str, layouts)) == ["2x2x2"]
    assert rejections == [
        "8x1x1 is left out: 16 sequences cannot be split among 8 copies in 4 micro-batches: batch_size must be a multiple of "
        "dp x micro_batches, 32",
        "1x1x8 is left out: tp 8 does not divide the 4 heads: a slice consists of whole heads",
        "1x8x1 is left out: pp 8 is more stages than the model has layers (4)",
        "2x2x1 is left out: it needs 4 ranks, but there are 8",
    ]


def test_find_refusal_says_which_ranks_have_a_layout(report: ModuleType, shape: Any) -> None:
    assert report.find_refusal([], [], 1, shape).endswith(
        "take two nodes (gpucourse deploy 6 --nodes 2), or --set ranks_per_node=4"
    )
    refusal = report.find_refusal([], ["8x1x1 is left out: why"], 8, shape)
    assert refusal == "no layout is left: 8x1x1 is left out: why; with 8 ranks take 2x2x2, 1x2x4, 4x1x2"
    assert report.find_refusal([], [], 7, shape) == "no layout is left: no layout of 7 ranks can take this model and batch"
    assert report.find_refusal(report.suggest_layouts(8, shape), [], 8, shape) is None


@pytest.mark.parametrize("text", ["", "2x2", "2x2x0", "2x2x-1", "axbxc", "2x2x2,", "1.5x1x1", "²x1x1"])
def test_parse_layouts_names_what_is_no_layout(report: ModuleType, text: str) -> None:
    with pytest.raises(ValueError, match=r"^.{0,7}$"):
        report.parse_layouts(text)


def test_count_weights_of_a_stage_are_those_that_it_holds(model: ModuleType, shape: Any) -> None:
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


def test_predict_message_bytes_of_the_lesson(model: ModuleType, traffic: ModuleType, shape: Any) -> None:
    layout = model.Layout(2, 2, 2)
    first, last = (traffic.predict_message_bytes(shape, layout, stage) for stage in (0, 1))
    assert first == {"dp": 226_048, "pp forward": 65_536, "pp back": 0, "tp": 524_288, "other": 0}
    assert last == {"dp": 218_624, "pp forward": 0, "pp back": 65_536, "tp": 524_288, "other": 0}
    single_bytes = traffic.predict_message_bytes(shape, model.Layout(1, 1, 1), 0)
    assert set(single_bytes.values()) == {0}


@pytest.mark.parametrize(
    ("slowest", "crossing"),
    [
        ("tp", {"dp": 0, "pp": 0, "tp": 4_194_304}),
        ("dp", {"dp": 1_778_688, "pp": 0, "tp": 0}),
        ("pp", {"dp": 0, "pp": 524_288, "tp": 0}),
    ],
)
def test_price_by_dimension_is_what_varies_slowest(
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


def test_questions_about_bytes_have_the_constants_of_the_counts(model: ModuleType, traffic: ModuleType, shape: Any) -> None:
    constants = {question.id: question.value for question in CATALOG.exercise("6.3")[1].questions}
    layout, crossing = model.Layout(1, 2, 4), {}
    for slowest in ("tp", "pp"):
        mesh = model.lay_out(layout, (slowest, *(name for name in ("dp", "pp", "tp") if name != slowest)))
        stages = {mesh[0, stage, piece].item(): stage for stage in range(2) for piece in range(4)}
        sizes = [traffic.predict_message_bytes(shape, layout, stages[rank]) for rank in range(8)]
        crossing[slowest] = sum(traffic.price_by_dimension(mesh, ON_TWO_NODES, sizes).values())
    assert constants["four-slices"] == crossing["tp"] / crossing["pp"]
    of_sequence = 4 * 64 * 128  # bytes of its activations between two layers
    assert constants["copies-in-a-log"] == 24 / (3_145_728 / (4 * 6) / of_sequence)
