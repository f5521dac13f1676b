"""The test of chance of 8.5, and the figures of its lesson."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_torch
FOLDER = "08-inference-engines"


@pytest.fixture(scope="module")
def chi_square() -> ModuleType:
    return beside_the_script(FOLDER, "chi_square")


def read_lesson() -> str:
    path = find_course({}).modules / FOLDER / "lesson-6-speculation.md"
    return " ".join(path.read_text(encoding="utf-8").split())


@pytest.mark.parametrize(("freedom", "false_alarm", "critical"), [(1, 0.05, 3.841), (10, 0.01, 23.209), (30, 0.001, 59.703)])
def test_find_critical_is_as_in_printed_tables(
    chi_square: ModuleType, freedom: int, false_alarm: float, critical: float
) -> None:
    assert chi_square.find_critical(freedom, false_alarm) == pytest.approx(critical, abs=1e-3)


def test_measure_puts_rare_texts_together(chi_square: ModuleType) -> None:
    expected = chi_square.weigh_texts(chi_square.LARGE)
    assert chi_square.measure(10_000 * expected) == (pytest.approx(0), pytest.approx(chi_square.find_critical(63)))
    count = int((100 * expected < chi_square.ENOUGH).sum())
    assert 0 < count < 64
    statistic, critical = chi_square.measure(100 * expected)
    assert (statistic, critical) == (pytest.approx(0), pytest.approx(chi_square.find_critical(64 - count)))


def test_measure_rejects_texts_of_the_small_model_and_not_those_of_the_large_one(chi_square: ModuleType) -> None:
    import torch

    source = torch.Generator().manual_seed(1)
    for percent, is_rejected in ((0, False), (100, True)):
        statistic, critical = chi_square.measure(chi_square.draw(chi_square.mix(percent), 5000, source))
        assert (statistic > critical) is is_rejected


def test_count_texts_of_a_rule_that_accepts_everything_are_the_small_models(chi_square: ModuleType) -> None:
    import torch

    def verify(draft: list[int], _q: object, p: list[list[float]], uniform: object) -> list[int]:
        assert callable(uniform)
        return [*draft, chi_square.draw_one(p[-1], uniform())]

    counts, tokens, calls = chi_square.count_texts(verify, 2000, 2, 1)
    assert (counts.sum(), tokens) == (2000, 3 * calls)
    statistic, critical = chi_square.measure(counts)
    assert statistic > critical
    with pytest.raises(ValueError, match="no token"):
        chi_square.count_texts(lambda *_: [], 10, 2, 1)
    assert isinstance(counts, torch.Tensor)


def test_lesson_figures_of_the_rule_are_those_of_the_rows(chi_square: ModuleType) -> None:
    p, q, text = chi_square.LARGE[0], chi_square.SMALL[0], read_lesson()
    alpha = sum(map(min, p, q))
    assert f"alpha is {alpha:.2f} here" in text
    assert f"the {p[0]:.2f} and {q[0]:.2f}, a {p[1]:.2f} and {q[1]:.2f}, one {p[2]:.2f} and {q[2]:.2f}" in text
    assert f"63 degrees of freedom is {chi_square.find_critical(63):.1f} if" in text


def test_lesson_table_of_tokens_is_the_sum_of_powers() -> None:
    rows = re.findall(r"\| (0\.\d) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", read_lesson())
    assert len(rows) == 3
    for alpha, *tokens in rows:
        assert tokens == [f"{sum(float(alpha) ** count for count in range(gamma + 1)):.2f}" for gamma in (1, 2, 3)]


def test_lesson_example_of_when_guesses_pay_is_by_the_clock() -> None:
    beside_the_script(FOLDER, "chi_square")
    clock = beside_the_script(FOLDER, "step_clock").Clock()
    text = read_lesson()

    def speed_up(gamma: int, batch: int, context: int) -> float:
        alone = clock.ns([(context, 1)] * batch)
        step = clock.ns([(context, gamma + 1)] * batch) + gamma * (alone * 15 // 100)
        return float(sum(0.8**count for count in range(gamma + 1)) * alone / step)

    assert f"takes {clock.ns([(100, 1)]) / 1e6:.1f} ms, whether it computes one token or five" in text
    assert clock.ns([(100, 5)]) / clock.ns([(100, 1)]) == pytest.approx(1, abs=1e-3)
    assert f"Four guesses make the answer {speed_up(4, 1, 100):.2f} times as fast" in text
    assert f"the same four guesses make the answers {speed_up(4, 256, 100):.2f} times as fast" in text
    assert max(range(9), key=lambda gamma: speed_up(gamma, 256, 100)) == 1
    assert f"There, one guess is best: it makes them {speed_up(1, 256, 100):.2f} times as fast" in text
    questions = {question.id: question for question in load(find_course({})).exercise("8.5")[1].questions}
    words = f"would make 256 requests {speed_up(4, 256, 8000):.2f} times as fast"
    assert words in (questions["long-contexts"].explanation or "")
    assert 16 * clock.pages() < 256 * 8000
    gpus = beside_the_script("shared", "gpus")
    a100 = gpus.find("NVIDIA A100-SXM4-80GB").ridge_flop_per_byte
    assert f"could compute {a100:.0f} operations in the time" in text
    assert 1 / a100 < 0.01, "more than 99 % of the arithmetic rests"
