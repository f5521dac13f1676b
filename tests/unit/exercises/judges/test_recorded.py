"""Figures that a judge computes and a run only reads: every recorded file has what its judge returns today."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from gpucourse.course.locate import find_course

EXERCISES = find_course({}).exercises
RECORDED: dict[str, tuple[str, str, str]] = {
    "days.json": ("04-benchmarking", "my_fleet", "record"),
    "invented.json": ("04-benchmarking", "my_sheets", "make_sheets"),
    "exposed.json": ("06-training-at-scale", "my_limits", "record"),
    "needs.json": ("07-hpc-systems", "my_sharing", "record"),
}


def load_judge(folder: str, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    before = set(sys.modules)
    for place in (EXERCISES / "shared", EXERCISES / folder, EXERCISES / folder / "judges"):
        monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, name, raising=False)
    try:
        return importlib.import_module(name)
    finally:
        for module in set(sys.modules) - before:
            if str(EXERCISES) in str(getattr(sys.modules[module], "__file__", "")):
                del sys.modules[module]


@pytest.mark.parametrize("file", RECORDED)
def test_recorded_figures_are_those_of_the_judge(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, judge, function = RECORDED[file]
    compute: Callable[[int | str], object] = getattr(load_judge(folder, judge, monkeypatch), function)
    recorded = json.loads((EXERCISES / folder / file).read_text(encoding="utf-8"))
    keys = {key: int(key) if key.isdecimal() else key for key in recorded}
    assert recorded == {key: json.loads(json.dumps(compute(value))) for key, value in keys.items()}


def test_every_invented_sheet_is_judged_by_the_rules_as_it_was_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = load_judge("04-benchmarking", "my_sheets", monkeypatch)
    sheets = [judgement for puzzle in range(1, 301) for judgement in judge.make_sheets(puzzle)]
    for judgement in sheets:
        assert judge._find_false(judgement["sheet"], judgement["tests"], judge.Rules()) == judgement["impossible"], judgement
    assert {judgement["impossible"] for judgement in sheets} == {None, *judge.FIGURES}


@pytest.mark.parametrize("name", ["a100-80", "a30"])
def test_find_places_fits_one_gpu_exactly_if_some_starts_allow_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = load_judge("07-hpc-systems", "my_sharing", monkeypatch)
    card = judge.mig.CARDS[name]
    for combination in itertools.combinations_with_replacement(card.profiles, 3):
        names = [profile.name for profile in combination]
        start_lists = itertools.product(*(profile.starts for profile in combination))
        fits = any(not judge.mig.find_problems(card, names, [(0, start) for start in starts]) for starts in start_lists)
        assert (len({gpu for gpu, _ in judge.find_places(card, names)}) == 1) == fits, names


@pytest.mark.parametrize(
    ("messages", "waits"),
    [
        ({}, 0),
        ({"after_backward": 2.0}, 2),  # only those of the last layer
        ({"after_backward": 3.0}, 6),  # 4 x 3 s, of which 6 s are hidden behind three layers
        ({"before_forward": 1.0}, 1),  # only those of the first layer
        ({"before_forward": 2.0}, 5),
        ({"forward_half": 0.5}, 0),  # a sum of one half takes as long as the other half computes
        ({"forward_half": 1.0}, 3.5),
    ],
)
def test_count_waits_of_four_layers(messages: dict[str, float], waits: float, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = load_judge("06-training-at-scale", "my_limits", monkeypatch)
    assert limits.count_waits(4, 1.0, 2.0, messages) == pytest.approx(waits)


def test_find_largest_of_tensor_parallelism_does_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = load_judge("06-training-at-scale", "my_limits", monkeypatch)
    batches = [replace(limits.CLUSTERS[0], sequences=count) for count in (64, 4096)]
    assert [limits.find_largest("tensor", cluster) for cluster in batches] == [8, 8]
    assert [limits.find_largest("data", cluster) for cluster in batches] == [16, 1024]
