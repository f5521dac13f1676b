"""Solve the deviations of B.2: compare the trace with the sum of calls that each cause would leave."""

from __future__ import annotations

from collections import Counter

PAGE = 16  # tokens whose keys and values are in one page of the cache
KERNELS = ("embed_tokens", "rms_norm", "qkv_gemm", "attention", "mlp_gemm", "sample_token")


def count_request(layers: int, prompt: int, tokens: int) -> Counter[str]:
    """Return the calls of one request: a pass for each token, of which the first computes the prompt."""
    passes = tokens
    calls = Counter(dict.fromkeys(("qkv_gemm", "attention", "mlp_gemm"), layers * passes))
    calls.update(rms_norm=2 * layers * passes, embed_tokens=passes, sample_token=passes)
    calls.update(copy_prompt=1, grow_cache=-(-(prompt + tokens - 1) // PAGE), allocate_logits=tokens)
    return calls


def explain(layers: int, requests: list[tuple[int, int]], trace: dict[str, int]) -> tuple[str, int]:
    """Return the cause whose sum of calls equals the trace, and its number. If no sum fits, calls were lost."""
    counts = [Counter(load_weights=layers), *(count_request(layers, *request) for request in requests)]
    whole = sum(counts, Counter())
    observed = Counter(trace)
    if observed == whole:
        return "complete", 0
    for begin in range(1, len(counts) + 1):
        if observed == sum(counts[begin:], Counter()):
            return "late", begin - 1
    for end in range(1, len(counts)):
        if observed == sum(counts[:-end], Counter()):
            return "early", end
    for index, request in enumerate(counts[1:]):
        if observed == whole + request:
            return "repeated", index
    if observed == whole + Counter({name: whole[name] for name in KERNELS}):
        return "twice", 0
    return "lost", (whole - observed).total()
