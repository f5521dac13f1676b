"""Solve the deviations of B.2 by trying which requests explain the trace, with calls counted pass by pass."""

from __future__ import annotations

PAGE = 16  # tokens whose keys and values are in one page of the cache
KERNELS = {  # launches of a pass, and of each layer in it
    "embed_tokens": (1, 0), "rms_norm": (0, 2), "qkv_gemm": (0, 1), "attention": (0, 1), "mlp_gemm": (0, 1),
    "sample_token": (1, 0),
}  # fmt: skip


def count(layers: int, requests: list[tuple[int, int]]) -> dict[str, int]:
    """Return the calls of the requests by name, counted token by token."""
    calls = dict.fromkeys([*KERNELS, "copy_prompt", "grow_cache", "allocate_logits"], 0)
    for prompt, tokens in requests:
        calls["copy_prompt"] += 1
        pages = 0
        for token in range(tokens):
            while pages * PAGE < prompt + token:
                pages += 1
            for name, (once, per_layer) in KERNELS.items():
                calls[name] += once + per_layer * layers
        calls["grow_cache"] += pages
        calls["allocate_logits"] += tokens
    return calls


def explain(layers: int, requests: list[tuple[int, int]], trace: dict[str, int]) -> tuple[str, int]:
    """Return the cause and its number. Try missing requests first, then a repeated one, and last double or lost calls."""
    calls = count(layers, requests)
    loaded = trace.get("load_weights", 0) == layers

    def fits(listed: list[tuple[int, int]]) -> bool:
        return all(trace.get(name, 0) == number for name, number in count(layers, listed).items())

    for missing in range(len(requests) + 1):
        if not trace.get("load_weights", 0) and fits(requests[missing:]):
            return "late", missing
        if loaded and fits(requests[: len(requests) - missing]):
            return ("early", missing) if missing else ("complete", 0)
    for index, request in enumerate(requests):
        if loaded and fits([*requests, request]):
            return "repeated", index
    calls["load_weights"] = layers
    lost = sum(number - trace.get(name, 0) for name, number in calls.items())
    return ("twice", 0) if lost < 0 else ("lost", lost)
