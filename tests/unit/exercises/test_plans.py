"""The formulas of a training plan, beside what papers have published; and the rules, with numbers worked out by hand."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from tests.course import CATALOG, FOLDERS
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "06-training-at-scale"
A100 = "NVIDIA A100-SXM4-80GB"
MEGATRON = ((1.7, 24, 2304, 24), (145.6, 80, 12288, 96), (1008.0, 128, 25600, 160))
"""Narayanan et al. 2021, table 1: billions of parameters, layers, width, heads."""


@pytest.fixture(scope="module")
def plans() -> Iterator[ModuleType]:
    place = str(FOLDERS.exercises / FOLDER)
    sys.path.append(place)
    yield beside_the_script(FOLDER, "plans")
    sys.path.remove(place)


@pytest.fixture(scope="module")
def targets(plans: ModuleType) -> ModuleType:
    return sys.modules[plans.Work.__module__]


def gpt(targets: ModuleType, layers: int, width: int, heads: int, vocabulary: int = 51200) -> Any:
    """Return a GPT as Megatron-LM's papers count it."""
    return targets.Shape("", layers, width, heads, heads, 4 * width, vocabulary, gated=False, source="")


def test_parameters_of_published_models(targets: ModuleType) -> None:
    shapes = targets.TARGETS
    assert shapes["1.3b"].parameters(2050) == 1_315_758_080  # OPT learns two places more than its 2,048 tokens
    assert shapes["7b"].parameters(4096) == 6_738_415_616
    assert shapes["70b"].parameters(4096) == 68_976_648_192
    assert shapes["8x7b"].parameters(4096) == 46_702_792_704
    mixtral = shapes["8x7b"]
    active = mixtral.parameters(4096) - mixtral.layers * (mixtral.layer_parameters - mixtral.active_parameters)
    assert round(active / 1e9, 1) == 12.9, "as its paper says"


@pytest.mark.parametrize(("billions", "layers", "width", "heads"), MEGATRON)
def test_parameters_are_those_of_megatron(targets: ModuleType, billions: float, layers: int, width: int, heads: int) -> None:
    assert gpt(targets, layers, width, heads).parameters(2048) / 1e9 == pytest.approx(billions, abs=0.051)


@pytest.mark.parametrize(("zero", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_memory_is_that_of_the_figure_of_zero(plans: ModuleType, targets: ModuleType, zero: int, gigabytes: float) -> None:
    """Rajbhandari et al. 2020, figure 1: 7.5 billion parameters, 64 GPUs."""
    shape = gpt(targets, 36, 4096, 32)
    work = targets.Work(shape, targets.CLUSTERS["64xh100"], 2048, 64)
    parts = plans.memory(work, plans.Plan(64, 1, 1, zero, "none", 1, "bf16"))
    states = sum(parts[name] for name in ("weights", "gradients", "optimizer"))
    assert states * 7.5e9 / shape.parameters(2048) / 1e9 == pytest.approx(gigabytes, abs=0.05)


def test_activation_bytes_are_those_of_korthikanti_et_al(plans: ModuleType, targets: ModuleType) -> None:
    """Their table 2, tensor and sequence parallelism: s b h (34 + 5 a s / h) / t for a layer, 34 / t without attention."""
    shape, h, a, s = gpt(targets, 96, 12288, 96), 12288, 96, 2048
    for tp in (1, 2, 8):
        lasting, _ = plans.activation_bytes(shape, s, tp, "none")
        assert lasting == pytest.approx(h * (34 + 5 * a * s / h) / tp)
        assert plans.activation_bytes(shape, s, tp, "attention") == pytest.approx((34 * h / tp, 5 * a * s / tp))
    assert plans.activation_bytes(shape, s, 1, "none")[0] == h * (34 + 80)
    assert plans.activation_bytes(shape, s, 1, "all")[0] == 2 * h


@pytest.mark.parametrize(
    ("shape", "batch", "gpus", "seconds", "mfu"),
    [
        ((96, 12288, 96), 64, 64, 13.75, 51.4),
        ((128, 25600, 160), 512, 512, 71.49, 56.3),
    ],
)
def test_mfu_percent_of_measured_steps(
    plans: ModuleType, targets: ModuleType, shape: tuple[int, int, int], batch: int, gpus: int, seconds: float, mfu: float
) -> None:
    """Korthikanti et al., table 5: from seconds a step to the utilisation that they print."""
    cluster = targets.Cluster("", A100, gpus // 8, 8, 300.0, 25.0, "")
    work = targets.Work(gpt(targets, *shape), cluster, 2048, batch)
    assert plans.mfu_percent(work, plans.Plan(gpus, 1, 1, 0, "none", 1, "bf16"), seconds) == pytest.approx(mfu, abs=0.2)


@pytest.fixture
def case(plans: ModuleType, targets: ModuleType) -> tuple[Any, Any]:
    """Return the work that is delivered, and a plan for it without a problem."""
    return targets.work_of("1.3b", "4xl4", 1), plans.Plan(2, 2, 1, 1, "attention", 32, "bf16")


def test_bubble_and_sent_bytes_of_a_pipeline(plans: ModuleType, case: tuple[Any, Any]) -> None:
    work, plan = case
    assert plans.bubble(replace(plan, pp=4, micro_batches=4)) == pytest.approx(3 / 7)
    activation = 2 * 2048 * 2048 * 2  # 2 sequences of a micro-batch, in 16 bits
    sent_bytes = plans.sent_bytes(work, plan)
    assert sent_bytes["pp"] == 32 * activation
    assert sent_bytes["tp"] == 0
    assert sent_bytes["dp"] == pytest.approx(2 * plans.stage_parameters(work, plan, 0), rel=0.01)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"dp": 4}, "product"),
        ({"dp": 1, "pp": 1, "tp": 4, "zero": 0}, "tp-over-nodes"),
        ({"micro_batches": 1}, "few-micro-batches"),
        ({"micro_batches": 3}, "batch"),
        ({"dp": 1, "pp": 4}, "zero-of-one"),
        ({"checkpointing": "none"}, "does-not-fit"),
    ],
)
def test_find_problems_names_the_rule_that_is_broken(
    plans: ModuleType, case: tuple[Any, Any], change: dict[str, Any], rule: str
) -> None:
    work, plan = case
    assert plans.find_problems(work, plan) == {}
    assert rule in plans.find_problems(work, replace(plan, **change))


def test_list_valid_plans_is_ranked_by_time(plans: ModuleType, case: tuple[Any, Any]) -> None:
    work, plan = case
    valid = plans.list_valid_plans(work)
    assert len(valid) > 50
    assert plan in [candidate for _, candidate in valid]
    assert [seconds for seconds, _ in valid] == sorted(seconds for seconds, _ in valid)
    assert plans.rank_percent(valid, valid[0][0]) == 0
    assert plans.rank_percent(valid, valid[-1][0] * 2) == 100


def test_list_valid_plans_is_empty_if_the_smallest_does_not_fit(plans: ModuleType, targets: ModuleType) -> None:
    work = targets.work_of("7b", "4xl4", 1)
    assert plans.list_valid_plans(work) == []
    assert plans.least_memory(work) > work.cluster.usable_bytes


def test_context_and_expert_parallelism_divide_what_their_papers_say(plans: ModuleType, targets: ModuleType) -> None:
    work, plan = targets.work_of("8x7b", "64xh100", 1), plans.Plan(64, 1, 1, 1, "all", 4, "bf16")
    experts = 32 * 8 * 3 * 4096 * 14336
    held = plans.stage_parameters(work, plan, 0)
    assert held == work.shape.parameters(work.length)
    assert held - plans.stage_parameters(work, replace(plan, ep=8), 0) == experts * 7 / 8
    tokens = plan.sequences(work) * work.length
    assert plans.sent_bytes(work, replace(plan, ep=8))["ep"] == 4 * 2 * 7 / 8 * tokens * 4096 * 2 * 32 * 4
    ring = plans.sent_bytes(work, replace(plan, dp=16, cp=4))
    keys = plan.sequences(work) * 4 * work.length / 4 * 1024 * 2  # of one rank: 8 of 32 heads
    assert ring["cp"] == (4 * 3 + 2 * 4) * keys * 32 * 4
    assert plans.memory(work, replace(plan, dp=16, cp=4))["activations"] == plans.memory(work, plan)["activations"]


@pytest.mark.parametrize(("schedule", "share"), [("1f1b", 3 / 11), ("interleaved", 1.5 / 9.5), ("zero-bubble", 1 / 9)])
def test_bubble_of_each_schedule(plans: ModuleType, schedule: str, share: float) -> None:
    """4 stages, 8 micro-batches. Qi et al. 2024, table 2, and Narayanan et al. 2021, section 2.2."""
    assert plans.bubble(plans.Plan(1, 4, 1, 0, "none", 8, "bf16", schedule=schedule)) == pytest.approx(share)


def rank_published(plans: ModuleType, work: Any, plan: Any) -> float:
    """Return the share of the valid plans that are faster than the fastest plan with this one's ranks, in percent."""
    valid = plans.list_valid_plans(work, plan)
    form = [(plan.dp, plan.pp, plan.tp, plan.cp, plan.ep, plan.schedule) for plan in (plan, *(item for _, item in valid))]
    return float(plans.rank_percent(valid, valid[form[1:].index(form[0])][0]))


@pytest.mark.slow
@pytest.mark.parametrize(("length", "dp", "cp"), [(8192, 128, 1), (131072, 8, 16)])
def test_the_plans_of_llama_3_are_in_the_faster_half(
    plans: ModuleType, targets: ModuleType, length: int, dp: int, cp: int
) -> None:
    """Llama 3 (2024), table 4: 16,384 H100, tp 8, pp 16, 16 million tokens a step, interleaved.

    Its 126 layers count as 128, because the first and the last stage have one layer less.
    """
    shape = targets.Shape("405b", 128, 16384, 128, 8, 53248, 128256, True, "")
    cluster = targets.Cluster("", "NVIDIA H100 80GB HBM3", 2048, 8, 450.0, 50.0, "")
    work = targets.Work(shape, cluster, length, 2**24 // length)
    plan = plans.Plan(dp, 16, 8, 1, "all", 16, "bf16", cp=cp, schedule="interleaved")
    assert rank_published(plans, work, plan) <= 50
    if cp > 1:  # without it there would be one sequence for each copy, and no pipeline
        assert "few-micro-batches" in plans.find_problems(work, plans.Plan(128, 16, 8, 1, "all", 1, "bf16"))


@pytest.mark.slow
def test_the_plan_of_deepseek_v3_is_in_the_faster_half(plans: ModuleType, targets: ModuleType) -> None:
    """DeepSeek-V3 (2024): 2,048 H800, pp 16, 64 ranks for the experts, ZeRO 1, no tp. Its 61 layers count as 64."""
    shape = targets.Shape("v3", 64, 7168, 128, 16, 2048, 129280, True, "", experts=256, top=8)
    assert shape.parameters(4096) / 1e9 == pytest.approx(671, rel=0.12)
    cluster = targets.Cluster("", "NVIDIA H100 80GB HBM3", 256, 8, 200.0, 50.0, "")
    work = targets.Work(shape, cluster, 4096, 2**14)
    assert rank_published(plans, work, plans.Plan(128, 16, 1, 1, "all", 128, "bf16", ep=64, schedule="zero-bubble")) <= 50


@pytest.mark.parametrize(
    ("form", "gigabytes", "seconds"),
    [
        ((8, 1, 1, 0, "none", 32), 126.8, 9.0),
        ((1, 1, 8, 0, "none", 256), 15.8, 12.2),
        ((8, 1, 1, 1, "all", 4), 48.3, 12.0),
    ],
)
def test_memory_and_step_seconds_of_the_lesson(
    plans: ModuleType, targets: ModuleType, form: tuple[Any, ...], gigabytes: float, seconds: float
) -> None:
    work, plan = targets.work_of("7b", "8xa100-80", 1), plans.Plan(*form, "bf16")
    assert plans.memory(work, plan)["total"] / 1e9 == pytest.approx(gigabytes, abs=0.05)
    assert plans.step_seconds(work, plan)["step"] == pytest.approx(seconds, abs=0.05)


def test_questions_have_the_constants_of_the_formulas(plans: ModuleType, targets: ModuleType) -> None:
    exercise = CATALOG.exercise("6.6")[1]
    constants = {question.id: question.value for question in exercise.questions if isinstance(question.value, float)}
    plan = plans.Plan(1, 8, 1, 0, "none", 1, "bf16")
    interleaved, of_256 = replace(plan, schedule="interleaved"), [2**bits for bits in range(3, 9)]
    work = targets.work_of("70b", "64xh100", 1)
    assert constants == {
        "bubble-and-batch": 256 / next(m for m in of_256 if plans.bubble(replace(interleaved, micro_batches=m)) <= 0.1),
        "gpus-for-70b": math.ceil(sum(plans.STATES["bf16"]) * work.shape.parameters(work.length) / work.cluster.usable_bytes),
        "third-stage": 48 / 8 * (8 - 2) * 0.5,
        "bound-of-a-plan": pytest.approx((8.0 + 3.2) / (1 - plans.bubble(replace(plan, micro_batches=32))), abs=0.01),
    }
    shape, length = targets.work_of("1.3b", "4xl4", 1).shape, 2048
    of_layer = shape.width * (34 + 5 * shape.heads * length / shape.width)
    assert plans.activation_bytes(shape, length, 1, "none")[0] == of_layer
    assert exercise.predict is not None
    for words, cluster, digits in (("takes {} times as long", "4xl4", 0), ("by a factor of {}.", "8xa100-80", 1)):
        valid = plans.list_valid_plans(targets.work_of("1.3b", cluster, 1))
        assert words.format(f"{valid[-1][0] / valid[0][0]:.{digits}f}") in (exercise.predict.explanation or "")
    valid = plans.list_valid_plans(work)
    slow = [plan for seconds, plan in valid if seconds > 25]
    assert all(plan.zero >= 2 for plan in slow)
    words = f"64 H100s: {valid[0][0]:.1f} to {valid[-1][0]:.0f} s, and all {len(slow)} plans above 25 s use ZeRO 2 or 3"
    assert words in (exercise.predict.explanation or "")
