"""The pictures of bonus B: the calls of one request, pass by pass."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas


def draw_request() -> Canvas:
    """Draw a request of 16 tokens that makes 8: the launches of each pass above, its calls of cudaMalloc below."""
    picture = Canvas(
        "The calls of one request",
        "One request of 16 tokens that makes 8, pass by pass. Above eight columns of boxes: pass 1 computes the 16 tokens of "
        "the prompt, passes 2 to 8 one token each. Every pass has the same height: one embed_tokens, five kernels in each "
        "layer, one sample_token. Below are the calls of cudaMalloc: one for the prompt and one page before pass 1, a second "
        "page before pass 2, and one block for the scores in every pass.",
        330,
    )
    for number in range(8):
        left = 130 + 78 * number
        picture.note(left + 34, 22, f"pass {number + 1}", anchor="middle")
        picture.label(left + 34, 38, "16 tokens" if number == 0 else "1 token", anchor="middle")
        picture.box(left, 48, 68, 22, "a", "embed")
        picture.box(left, 74, 68, 66, "b", "5 x layers")
        picture.box(left, 144, 68, 22, "c", "sample")
        for row, (kind, words, passes) in enumerate(
            (("e", "prompt", {0}), ("a", "page", {0, 1}), ("d", "scores", set(range(8))))
        ):
            picture.box(left, 194 + 28 * row, 68, 24, kind if number in passes else "empty", words if number in passes else "")
    picture.heading(20, 110, "launches")
    picture.heading(20, 236, "cudaMalloc")
    picture.line(20, 180, 740, 180, "grid")
    picture.note(20, 300, "A pass launches 2 + 5 x layers kernels, whether it computes 16 tokens or one.")
    picture.note(20, 318, "The scores get a new block in each pass: one buffer for all of them would be enough.")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"request": draw_request}
