"""The small model of module 8: the same scores as transformers' Llama, alone, in a batch, and over pages."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.parts import need_module
from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "08-inference-engines"


@pytest.fixture(scope="module")
def small_llm() -> ModuleType:
    return beside_the_script(FOLDER, "small_llm")


@pytest.fixture(scope="module")
def paged_model() -> ModuleType:
    return beside_the_script(FOLDER, "paged_model")


def draw_tokens(count: int, seed: int) -> list[int]:
    import torch

    return torch.randint(256, (count,), generator=torch.Generator().manual_seed(seed)).tolist()  # type: ignore[no-any-return]


@needs_torch
def test_forward_has_the_scores_of_transformers(small_llm: ModuleType) -> None:
    import torch

    transformers = need_module("transformers")
    model = small_llm.SmallModel(dtype=torch.float32)
    shape = transformers.LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=64, tie_word_embeddings=True, rms_norm_eps=1e-6,
    )  # fmt: skip
    reference: Any = transformers.LlamaForCausalLM(shape).eval()
    names = {
        "self_attn.q_proj": "query", "self_attn.k_proj": "key", "self_attn.v_proj": "value", "self_attn.o_proj": "output",
        "mlp.gate_proj": "gate", "mlp.up_proj": "up", "mlp.down_proj": "down",
    }  # fmt: skip
    tokens = torch.tensor(draw_tokens(20, 1))
    with torch.no_grad():
        reference.model.embed_tokens.weight.copy_(model.embedding)
        for theirs, ours in zip(reference.model.layers, model.layers, strict=True):
            for path, name in names.items():
                theirs.get_submodule(path).weight.copy_(ours[name].T)
        scores = reference(tokens[None]).logits[0]
    ours = model.forward(tokens, torch.arange(20), small_llm.ContiguousCache(2).attend)
    assert float((ours - scores).abs().max()) < 1e-4
    assert sum(tensor.numel() for tensor in model.tensors()) == sum(weight.numel() for weight in reference.parameters())


@needs_torch
def test_compute_over_pages_has_the_scores_of_each_request_alone(small_llm: ModuleType, paged_model: ModuleType) -> None:
    model = paged_model.small_llm.SmallModel(spread=0.3)
    paged = paged_model.PagedModel(model, 8, 4)
    first, second = draw_tokens(9, 2), draw_tokens(3, 3)
    tables = {"first": [5, 0, 7], "second": [2]}

    def make_row(name: str, tokens: list[int], start: int) -> Any:
        slots = [tables[name][place // 4] * 4 + place % 4 for place in range(start, start + len(tokens))]
        return paged_model.Row(tokens, slots, tables[name], start + len(tokens))

    paged.compute([make_row("first", first[:6], 0)])
    scores = paged.compute([make_row("second", second, 0), make_row("first", first[6:], 6)])
    for row, tokens in zip(scores, (second, first), strict=True):
        assert float((row - paged_model.small_llm.score_alone(model, tokens)).abs().max()) < 1e-9
    paged.copy_page(0, 1)
    tables["first"] = [5, 1, 7]
    again = paged.compute([make_row("first", first[8:], 8)])[0]
    assert float((again - scores[1]).abs().max()) < 1e-9


@needs_torch
def test_answer_alone_is_the_likeliest_token_each_time(small_llm: ModuleType) -> None:
    model, text = small_llm.SmallModel(spread=0.3), draw_tokens(5, 4)
    answer, gap = small_llm.answer_alone(model, text, 3)
    for token in answer:
        assert int(small_llm.score_alone(model, text).argmax()) == token
        text.append(token)
    assert gap > 1e-6
