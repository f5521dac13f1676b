"""Another solution: it simulates the request pass by pass, and counts launches and blocks."""

from __future__ import annotations

from collections import Counter

PAGE = 16  # tokens whose keys and values are in one page of the cache


def count_launches(layers: int, prompt: int, tokens: int) -> dict[str, int]:
    """Count every launch."""
    launches: Counter[str] = Counter()
    for _ in range(tokens):
        launches["embed_tokens"] += 1
        for _ in range(layers):
            launches.update(["rms_norm", "qkv_gemm", "attention", "rms_norm", "mlp_gemm"])
        launches["sample_token"] += 1
    return dict(launches)


def count_blocks(layers: int, width: int, vocabulary: int, prompt: int, tokens: int) -> dict[str, tuple[int, int]]:
    """Record every block as it is requested."""
    blocks: dict[str, list[int]] = {"load_weights": [12 * width * width * 2] * layers, "copy_prompt": [4 * prompt]}
    blocks["grow_cache"], blocks["allocate_logits"] = [], []
    for token in range(tokens):
        while len(blocks["grow_cache"]) * PAGE < prompt + token:
            blocks["grow_cache"].append(PAGE * layers * (width + width) * 2)
        blocks["allocate_logits"].append(4 * vocabulary)
    return {name: (len(sizes), sum(sizes)) for name, sizes in blocks.items()}
