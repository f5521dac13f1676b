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
    return beside_the_script("shared", "paged_model")


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
    model = small_llm.SmallModel(spread=0.3)
    paged = paged_model.PagedModel(model, 8, 4)
    first, second = draw_tokens(9, 2), draw_tokens(3, 3)
    tables = {"first": [5, 0, 7], "second": [2]}

    paged.compute([paged_model.make_row(first, 0, 6, tables["first"], 4)])
    rows = [paged_model.make_row(second, 0, 3, tables["second"], 4), paged_model.make_row(first, 6, 9, tables["first"], 4)]
    scores = paged.compute(rows)
    for row, tokens in zip(scores, (second, first), strict=True):
        assert float((row - small_llm.score_alone(model, tokens)).abs().max()) < 1e-9
    paged.copy_page(0, 1)
    tables["first"] = [5, 1, 7]
    rows = [paged_model.make_row(first, 8, 9, tables["first"], 4), paged_model.make_row(second, 2, 3, tables["second"], 4)]
    for row, earlier in zip(paged.compute(rows), (scores[1], scores[0]), strict=True):
        assert float((row - earlier).abs().max()) < 1e-9, "rows of one token are read together"


@needs_torch
@pytest.mark.parametrize("name", ["Llama", "GPT2", "OPT"])
def test_hub_model_over_pages_has_the_scores_of_the_model_itself(paged_model: ModuleType, name: str) -> None:
    import torch

    transformers: Any = need_module("transformers")
    common = {"vocab_size": 90, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "bos_token_id": 0,
              "eos_token_id": 1, "pad_token_id": 2}  # fmt: skip
    special = {"Llama": {"num_key_value_heads": 2}, "GPT2": {}, "OPT": {"word_embed_proj_dim": 32}}[name]
    config = getattr(transformers, f"{name}Config")(**common, **special)
    torch.manual_seed(0)
    model = getattr(transformers, {"GPT2": "GPT2LMHeadModel"}.get(name, f"{name}ForCausalLM"))(config).eval()
    first, second = [token % 90 for token in draw_tokens(9, 2)], [token % 90 for token in draw_tokens(6, 3)]
    with torch.inference_mode():
        alone = [model(torch.tensor([text])).logits[0, -1] for text in (first, second)]
    paged = paged_model.PagedModel(paged_model.HubModel(model), 8, 4)
    paged.compute([paged_model.make_row(first, 0, 5, [3, 1, 0], 4), paged_model.make_row(second, 0, 5, [6, 2], 4)])
    rows = paged_model.make_row(first, 5, 9, [3, 1, 0], 4), paged_model.make_row(second, 5, 6, [6, 2], 4)
    for scores, expected in zip(paged.compute(rows), alone, strict=True):
        assert float((scores - expected).abs().max()) < 1e-5


@needs_torch
def test_answer_alone_is_the_likeliest_token_each_time(small_llm: ModuleType) -> None:
    model, text = small_llm.SmallModel(spread=0.3), draw_tokens(5, 4)
    answer, gap = small_llm.answer_alone(model, text, 3)
    for token in answer:
        assert int(small_llm.score_alone(model, text).argmax()) == token
        text.append(token)
    assert gap > 1e-6
