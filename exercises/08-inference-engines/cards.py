"""Shapes of published language models, from their configuration files (config.json) and reports.

`parameters` counts all weights, including those of experts that a token does not use.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """The shape of a model. A number that a model does not have is 0.

    `hidden` is the width inside one feed-forward block, or inside one expert of a model with experts. `latent` and `rope_dim`
    are the numbers that multi-head latent attention keeps of a token, instead of keys and values for each head.
    In `windowed_layers` of the layers, a token looks back only `window` tokens, itself included. Each layer has `experts`, of
    which `per_token` compute a token.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    vocabulary: int
    parameters: int
    source: str
    latent: int = 0
    rope_dim: int = 0
    window: int = 0
    windowed_layers: int = 0
    experts: int = 0
    per_token: int = 0


CARDS = {
    "llama-2-7b": Card(32, 4096, 32, 32, 128, 11008, 32000, 6_738_415_616, "meta-llama/Llama-2-7b-hf"),
    "llama-3.1-8b": Card(32, 4096, 32, 8, 128, 14336, 128256, 8_030_261_248, "meta-llama/Llama-3.1-8B"),
    "llama-3.1-70b": Card(80, 8192, 64, 8, 128, 28672, 128256, 70_553_706_496, "meta-llama/Llama-3.1-70B"),
    "llama-3.1-405b": Card(126, 16384, 128, 8, 128, 53248, 128256, 405_853_388_800, "meta-llama/Llama-3.1-405B"),
    "qwen2.5-72b": Card(80, 8192, 64, 8, 128, 29568, 152064, 72_706_203_648, "Qwen/Qwen2.5-72B"),
    "mistral-7b": Card(
        32, 4096, 32, 8, 128, 14336, 32000, 7_241_732_096, "mistralai/Mistral-7B-v0.1", window=4096, windowed_layers=32
    ),
    "mixtral-8x7b": Card(
        32, 4096, 32, 8, 128, 14336, 32000, 46_702_792_704, "mistralai/Mixtral-8x7B-v0.1", experts=8, per_token=2
    ),
    "qwen3-235b": Card(
        94, 4096, 64, 4, 128, 1536, 151936, 235_093_634_560, "Qwen/Qwen3-235B-A22B", experts=128, per_token=8
    ),
    "gpt-oss-120b": Card(
        36, 2880, 64, 8, 64, 2880, 201088, 116_829_156_672, "openai/gpt-oss-120b",
        window=128, windowed_layers=18, experts=128, per_token=4,
    ),
    "deepseek-v3": Card(
        61, 7168, 128, 128, 128, 2048, 129280, 671_026_419_200, "deepseek-ai/DeepSeek-V3: config.json without its extra layer "
        "for prediction; the first 3 layers have no experts", latent=512, rope_dim=64, experts=256, per_token=8,
    ),
}  # fmt: skip

GPUS = {
    "t4": "Tesla T4", "l4": "NVIDIA L4", "a10g": "NVIDIA A10G", "l40s": "NVIDIA L40S", "a100": "NVIDIA A100-SXM4-80GB",
    "h100": "NVIDIA H100 80GB HBM3", "h200": "NVIDIA H200",
}  # fmt: skip
"""The GPUs of this module's parameters, and their names in gpus.json."""
