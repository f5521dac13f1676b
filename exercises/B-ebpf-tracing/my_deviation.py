"""Your part of B.2: a trace does not have the calls that it should have. Find out why.

You will learn    how to tell a trace that began late from one that lost calls, and a repeated request from a call counted twice
You will produce  the cause of each trace that deviates, from its counts alone
Try it            gpucourse try B.2
Your part         the body of `explain`; keep its name and parameters, and add functions as you need them
Reading           modules/B-ebpf-tracing/lesson-2-calls.md, "The calls of a request" and "When a trace deviates"
"""

from __future__ import annotations

PAGE = 16  # tokens whose keys and values are in one page of the cache
KERNELS = ("embed_tokens", "rms_norm", "qkv_gemm", "attention", "mlp_gemm", "sample_token")
SITES = ("load_weights", "copy_prompt", "grow_cache", "allocate_logits")


def explain(layers: int, requests: list[tuple[int, int]], trace: dict[str, int]) -> tuple[str, int]:
    """Return why the trace deviates from what the engine did, with a number.

    The engine loaded its weights, and then computed the `requests` of its log in this order: each has the tokens of the prompt
    and the tokens to generate. Each request begins with an empty cache. `trace` has the launches of each of KERNELS, and the
    blocks of each of SITES; a name without calls may be absent. There is one cause:

    ("complete", 0)     nothing is missing, and nothing is counted twice
    ("late", k)         the trace began after the weights were loaded and after the first k requests
    ("early", k)        the trace ended before the last k requests (1 or more)
    ("repeated", i)     the client sent request i (from 0) a second time, which its log does not show
    ("twice", 0)        there are two probes on the function that launches kernels
    ("lost", n)         n calls are missing, as from a full buffer: no other cause explains what is missing
    """
    raise NotImplementedError("explain: which calls does one request make, and which sum of them is missing or counted twice?")
