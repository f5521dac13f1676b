"""The course's solution of my_costs.py: it multiplies passes by the launches of a pass, and has a product for each function."""

from __future__ import annotations

PAGE = 16  # tokens whose keys and values are in one page of the cache


def count_launches(layers: int, prompt: int, tokens: int) -> dict[str, int]:
    """Count one pass for the prompt, and one for each token but the last: as many passes as tokens."""
    passes = tokens
    return {
        "embed_tokens": passes,
        "rms_norm": 2 * layers * passes,
        "qkv_gemm": layers * passes,
        "attention": layers * passes,
        "mlp_gemm": layers * passes,
        "sample_token": passes,
    }


def count_blocks(layers: int, width: int, vocabulary: int, prompt: int, tokens: int) -> dict[str, tuple[int, int]]:
    """Count the blocks. The last pass sees the prompt and all generated tokens but the last."""
    cached_tokens = prompt + tokens - 1
    pages = -(-cached_tokens // PAGE)
    page_bytes = 2 * layers * PAGE * width * 2
    return {
        "load_weights": (layers, layers * 12 * width * width * 2),
        "copy_prompt": (1, 4 * prompt),
        "grow_cache": (pages, pages * page_bytes),
        "allocate_logits": (tokens, tokens * 4 * vocabulary),
    }
