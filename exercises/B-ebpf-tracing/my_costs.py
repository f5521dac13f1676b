"""Your part of B.2: predict what one request costs an inference engine, in kernels and in blocks of memory.

You will learn    how launches and allocations follow from layers, prompt and tokens
You will produce  the launches of every kernel and the blocks of every allocating function, equal to those in the trace
Try it            gpucourse try B.2
Your part         the bodies of `count_launches` and `count_blocks`; keep their names and parameters
Reading           modules/B-ebpf-tracing/lesson-2-calls.md, "The calls of a request"
"""

from __future__ import annotations

PAGE = 16  # tokens whose keys and values are in one page of the cache


def count_launches(layers: int, prompt: int, tokens: int) -> dict[str, int]:
    """Return how often each kernel is launched for a request with `prompt` tokens that generates `tokens` (both 1 or more).

    The engine computes the whole prompt in one pass, which gives the first token. Each further token takes a pass
    over the token before it. A pass launches embed_tokens once, and in each layer rms_norm, qkv_gemm, attention,
    rms_norm again, and mlp_gemm. After each pass sample_token picks the token. The keys are these six names.
    """
    raise NotImplementedError("count_launches: how many passes are there, and what does each of them launch?")


def count_blocks(layers: int, width: int, vocabulary: int, prompt: int, tokens: int) -> dict[str, tuple[int, int]]:
    """Return how many blocks each function of the engine gets from cudaMalloc, and how many bytes they have in total.

    Count from the start of the engine to the end of its first request. The keys are these four functions:

    load_weights      one block per layer: 12 matrices of width x width numbers, 2 bytes each
    copy_prompt       one block: 4 bytes for each token of the prompt
    grow_cache        one block for each page of PAGE tokens that a pass needs: key and value in every layer, `width` numbers
                      of 2 bytes each. A pass needs room for all tokens up to the one that it computes. The last token that
                      is generated is never computed
    allocate_logits   one block for each generated token: 4 bytes for each word of the vocabulary
    """
    raise NotImplementedError("count_blocks: how many tokens are in the cache when the last pass has run?")
