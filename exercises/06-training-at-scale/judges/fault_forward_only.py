"""Judge a repaired copy: it must count the operations of forward and backward passes."""

from __future__ import annotations

from gpucourse.judge import Case, Part, Way

WAYS = {
    "still": Way(
        "by your count, a step of {name} with {batch} sequences of {length} tokens has {given:.3g} operations, but it really "
        "has {right:.3g}: backward needs two products for each one of forward"
    )
}
CASES = ((24, 2048, 32, 1024, 8), (12, 768, 12, 2048, 3))  # layers, width, heads, tokens, sequences
VOCABULARY = 50_000


def judge(part: Part) -> None:
    """Compare with Megatron-LM's formula, which leaves out the biases and norms of the layers (less than 1 %)."""
    shape_of = part.function("Shape")
    for layers, h, heads, s, batch in CASES:
        shape = part.call(shape_of, "a GPT", layers, h, heads, heads, 4 * h, VOCABULARY, False, "")
        answer = part.call(shape.model_flops, batch * s, s)
        reference = 72 * batch * layers * s * h**2 * (1 + s / (6 * h) + VOCABULARY / (12 * layers * h))
        if abs(answer / reference - 1) > 0.01:
            if abs(3 * answer / reference - 1) <= 0.01:
                raise part.wrong("still", name="a GPT", batch=batch, length=s, given=answer, right=reference)
            part.compare([Case(f"{layers} layers of width {h}", answer, reference)], tolerance=0.01)
    part.note("6 operations for each weight of a product and token, 12 for each pair of tokens, width and layer")
