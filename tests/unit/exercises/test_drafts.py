"""The drafts of 8.5, and a model that checks their guesses."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_torch
FOLDER = "08-inference-engines"


@pytest.fixture(scope="module")
def drafts() -> ModuleType:
    return beside_the_script(FOLDER, "drafts")


def make_model(drafts: ModuleType, seed: int = 0) -> Any:
    return drafts.SmallModel(seed=seed, spread=0.3)


def test_speculate_at_temperature_0_writes_the_models_own_text_with_every_draft(drafts: ModuleType) -> None:
    import torch

    model, prompt = make_model(drafts), [5, 9, 200, 5, 9, 200, 7]
    alone, gap = beside_the_script(FOLDER, "small_llm").answer_alone(model, prompt, 20)
    assert gap > 1e-6
    every = [
        drafts.PairDraft(torch.tensor(prompt * 4)),
        drafts.ModelDraft(make_model(drafts, seed=1)),
        drafts.ModelDraft(drafts.round_weights(model, 3)),
        drafts.LookupDraft(),
    ]
    for draft in every:
        text = drafts.speculate(model, draft, prompt, 20, 3, drafts.choose_likeliest, greedy=True, seed=1)
        assert text.tokens[:20] == alone
        assert text.accepted + text.steps == len(text.tokens)


def test_speculate_with_itself_as_the_draft_accepts_every_guess(drafts: ModuleType) -> None:
    model = make_model(drafts)
    text = drafts.speculate(model, drafts.ModelDraft(model), [1, 2, 3], 12, 3, drafts.choose_likeliest, greedy=True, seed=1)
    assert (text.steps, text.guesses, text.accepted) == (3, 9, 9)
    assert text.describe()["tokens_per_step"] == 4
    sampled = drafts.speculate(
        model, drafts.ModelDraft(model), [1, 2, 3], 12, 3, lambda draft, *_: draft[:1], greedy=False, seed=1
    )
    assert min(sampled.overlaps) == pytest.approx(1), "the cache of the draft is right after rejections"


def test_lookup_draft_guesses_what_followed_the_last_time(drafts: ModuleType) -> None:
    guesses, rows = drafts.LookupDraft().guess([1, 2, 3, 4, 5, 1, 2, 3], 2, lambda: 0.5, greedy=True)
    assert (guesses, [row[token] for row, token in zip(rows, guesses, strict=True)]) == ([4, 5], [1, 1])
    assert drafts.LookupDraft().guess([1, 2, 3, 4], 2, lambda: 0.5, greedy=True) == ([], [])


def test_speculate_with_a_rule_that_returns_no_token_fails(drafts: ModuleType) -> None:
    with pytest.raises(ValueError, match="a step returned no token"):
        drafts.speculate(make_model(drafts), drafts.LookupDraft(), [1, 2], 4, 2, lambda *_: [], greedy=True, seed=1)
