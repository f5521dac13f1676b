"""The check of a learner's attention in 0.1, also after the learner has removed the mask from transformer.py."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_module("torch")
FOLDER = "00-local-foundations"


def test_find_fault_judges_your_attention_alone_if_transformer_has_no_mask(
    torch: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    solution = beside_the_script(f"{FOLDER}/solutions", "my_attention")
    training = beside_the_script(FOLDER, "training")

    class WithoutMask(training.Attention):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, lines: Any) -> Any:
            return super().forward(x, lines) if self.attend else self.torchs(x, x, x, need_weights=False)[0]

    monkeypatch.setattr(training, "Attention", WithoutMask)
    device = torch.device("cpu")
    assert training.find_fault(solution.attend, 32, device) == ""
    assert "off by up to" in training.find_fault(lambda _query, _key, value, _heads, _lines: value, 32, device)
