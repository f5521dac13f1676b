"""The small models of module 8 that learn from Python's own library."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_torch
SHAPE = {"width": 16, "layers": 1, "heads": 2, "kv_heads": 1, "head_dim": 8, "hidden": 24}


@pytest.fixture(scope="module")
def trained() -> ModuleType:
    return beside_the_script("08-inference-engines", "trained")


def test_train_learns_the_text_and_is_the_same_again(trained: ModuleType) -> None:
    import torch

    text = trained.read_text()
    first, second = (trained.train(text, steps=12, **SHAPE) for _ in range(2))
    assert all(torch.equal(*pair) for pair in zip(first.tensors(), second.tensors(), strict=True))
    assert trained.perplexity(first, text, sequences=4) < 150, "256 without learning"


def test_attend_in_rows_is_plain_attention_of_each_sequence(trained: ModuleType) -> None:
    import torch

    source = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(12, heads, 4, generator=source, dtype=torch.float64) for heads in (4, 2, 2))
    mixed = trained.attend_in_rows(6)(0, query, key, value)
    alone = [
        beside_the_script("08-inference-engines", "small_llm").attention(query[rows], key[rows], value[rows], 0)
        for rows in (slice(0, 6), slice(6, 12))
    ]
    assert torch.allclose(mixed, torch.cat(alone), atol=1e-12)


def test_read_text_without_a_library_in_files_says_what_to_use(
    trained: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(trained.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    with pytest.raises(FileNotFoundError, match=r"too few source files .* use a Python with its library in files"):
        trained.read_text()
