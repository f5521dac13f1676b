"""The counters of 8.1: the decoder that is counted is a right one, and what it reads is counted once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.exercises.scripts import beside_the_script

torch = pytest.importorskip("torch")
counters = beside_the_script("08-inference-engines", "counters")
small_llm = beside_the_script("08-inference-engines", "small_llm")
cards = beside_the_script("08-inference-engines", "cards")
PLAIN = cards.Card(2, 48, 4, 2, 8, 64, 96, 0, "made up")


def test_a_decoder_has_the_scores_of_the_small_model_with_its_weights() -> None:
    decoder = counters.Decoder(PLAIN, dtype=torch.float64)
    model = small_llm.SmallModel(vocabulary=96, width=48, layers=2, heads=4, kv_heads=2, head_dim=8, hidden=64)
    model.embedding = decoder.embedding
    for layer, weights in zip(model.layers, decoder.layers, strict=True):
        layer |= {name: weights[name] for name in ("query", "key", "value", "output")}
        layer |= {name: weights[name][0] for name in ("gate", "up", "down")}
    decoder.head = decoder.embedding.T
    rows = [(0, 7), (0, 1)]
    caches = [counters.Cache(PLAIN, 0, "cpu", torch.float64) for _ in rows]
    scores = decoder.step(rows, decoder.attend(caches, rows))
    for row, (_, new) in zip(scores, rows, strict=True):
        torch.testing.assert_close(row, small_llm.score_alone(model, list(range(new))), atol=1e-12, rtol=0)


def test_a_window_in_pieces_is_attention_with_a_mask() -> None:
    query, key, value = (torch.randn(20, heads, 8, dtype=torch.float64) for heads in (4, 2, 2))
    whole = counters.attend_grouped(query, key, value, window=5)
    card = replace(PLAIN, layers=1, window=5, windowed_layers=1)
    cache = counters.Cache(card, 0, "cpu", torch.float64)
    results = []
    for start, end in ((0, 9), (9, 10), (10, 20)):
        seen = cache.append(0, key[start:end], value[start:end])
        results.append(counters.attend_grouped(query[start:end], *seen, window=5))
    torch.testing.assert_close(torch.cat(results), whole, atol=1e-12, rtol=0)
    assert cache.bytes() == 2 * 5 * 2 * 8 * 8


def test_experts_mix_the_blocks_that_the_router_chose() -> None:
    decoder = counters.Decoder(replace(PLAIN, experts=4, per_token=4), dtype=torch.float64)
    x, layer = torch.randn(3, 48, dtype=torch.float64), decoder.layers[0]
    shares = (x @ layer["router"]).softmax(-1)
    blocks = [counters._expand(x, *(layer[name][expert] for name in ("gate", "up", "down"))) for expert in range(4)]
    right = sum(shares[:, [expert]] * block for expert, block in enumerate(blocks))
    torch.testing.assert_close(decoder._feed_forward(layer, x), right, atol=1e-12, rtol=0)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_count_step_reads_each_weight_and_each_key_once(device: str) -> None:
    decoder = counters.Decoder(PLAIN, device=device)
    counts = counters.count_step(decoder, [(10, 1), (3, 4)])
    matrices = [decoder.head, *(tensor for layer in decoder.layers for tensor in layer.values())]
    assert counts.weights_read == 4 * sum(tensor.numel() for tensor in matrices)
    assert counts.cache_read == counts.cache_held == 2 * 2 * 2 * 8 * (11 + 7) * 4


def test_both_forms_of_latent_attention_agree_and_absorbed_costs_less() -> None:
    sizes = {"heads": 3, "dim": 8, "rope_dim": 4, "latent": 12, "length": 50}
    results = {form: counters.attend_latent(form, **sizes) for form in ("expanded", "absorbed")}
    torch.testing.assert_close(results["expanded"][0], results["absorbed"][0], atol=1e-12, rtol=0)
    assert results["absorbed"][1].operations < results["expanded"][1].operations / 5
