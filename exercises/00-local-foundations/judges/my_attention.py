"""Judge my_attention.py of 0.1: the values and the gradients of attention, for several shapes, heads and lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from gpucourse.judge import Case, Part, Way

WAYS = {
    "sees-the-future": Way(
        "a character looks at later characters of its line, and so at the one that it has to guess. The loss would fall to "
        "almost nothing, and the model could not write, because then there are no later characters",
        ("(earlier & same_line)", "same_line"),
    ),
    "sees-other-lines": Way(
        "a character looks at earlier lines. Each line is a separate story, so nothing there helps to guess the next character "
        "of this one: the model has to learn to ignore it",
        ("(earlier & same_line)", "(earlier & (same_line | True))"),
    ),
    "no-mask": Way(
        "every character looks at all characters of the piece: at later ones, which have to be guessed, and at other lines",
        ("scores.masked_fill(~(earlier & same_line)[:, None], -math.inf)", "scores"),
    ),
    "not-itself": Way(
        "a character does not look at itself, although it is known and is the best hint to the next one. The first character "
        "of a line then looks at nothing, and a softmax of nothing is nan",
        (".tril()", ".tril(-1)"),
    ),
    "one-ahead": Way(
        "each character looks at its successor, which is exactly the one that it has to guess",
        (".tril()", ".tril(1)"),
    ),
    "not-scaled": Way(
        "the scores are not scaled. A sum of more products varies more, so with wide heads the softmax would pick a single "
        "character even before training, and its gradients would vanish",
        (" / math.sqrt(size)", ""),
    ),
    "scaled-by-the-width": Way(
        "the scores are scaled by the width of the model. A score is a sum over the numbers of one head only",
        ("math.sqrt(size)", "math.sqrt(width)"),
    ),
    "scaled-without-root": Way(
        "the scores are divided by the number of products, and not by the spread of their sum. A sum of n independent products "
        "varies sqrt(n) times as much as one of them",
        ("math.sqrt(size)", "size"),
    ),
    "one-head": Way(
        "all heads attend together, with one weight for each pair of characters. Each head needs its own weights, so that one "
        "can look for the giver while another looks for the number",
        ("size = width // heads", "heads, size = 1, width"),
    ),
    "heads-mixed": Way(
        "the heads mix the numbers of different characters: the shape is right, but in memory all heads of a "
        "character are still side by side. Separate the heads first, and move their dimension afterwards",
        ("view(batch, length, heads, size).transpose(1, 2) for", "reshape(batch, heads, length, size) for"),
    ),
    "results-mixed": Way(
        "the heads are right, but their results are joined in the wrong order: move the dimension of the heads back before you "
        "join it with their numbers",
        ("value).transpose(1, 2).reshape", "value).reshape"),
    ),
    "masked-with-zero": Way(
        "hidden scores were set to 0. The softmax gives such a character the weight exp(0), often more than that of a visible "
        "one: a hidden character needs the weight 0",
        ("-math.inf)", "0.0)"),
    ),
    "masked-after-softmax": Way(
        "hidden weights are 0, but the others no longer add up to 1, so characters near the beginning of a line get hardly "
        "anything. Hide before the softmax, or divide by the sum again",
        (
            "scores.masked_fill(~(earlier & same_line)[:, None], -math.inf)\n    return (scores.softmax(dim=-1)",
            "scores.softmax(dim=-1) * (earlier & same_line)[:, None]\n    return (scores",
        ),
    ),
    "softmax-over-queries": Way(
        "the weights of one character do not add up to 1: the softmax runs over the queries, the characters that look, but "
        "must run over the keys, the characters that are looked at",
        ("scores.softmax(dim=-1)", "scores.softmax(dim=-2).nan_to_num()"),
    ),
    "detached": Way(
        "the values are right, but no gradient reaches the query: the model could not learn where to look",
        ("scores = query @", "scores = query.detach() @"),
    ),
}
# heads, width of a head, and the line of each character, for each sequence of the batch
SETTINGS = (
    (1, 4, [[0, 0, 0, 0, 0]]),
    (3, 2, [[0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 2, 2]]),
    (2, 5, [[4, 4, 4, 4], [7, 8, 8, 9], [0, 0, 0, 1]]),
    (4, 8, [[0] * 9 + [1] * 8]),
    (2, 3, [[5]]),
)


def judge(part: Part) -> None:
    """Compare the result and its gradients for several shapes."""
    torch.set_num_threads(1)
    attend = part.function("attend")
    cases, gradient_cases = [], []
    for heads, size, lines in SETTINGS:
        name = f"{len(lines)} x {len(lines[0])} characters, {heads} head{'s' * (heads > 1)} of width {size}"
        knobs = {"characters": len(lines[0]), "heads": heads, "lines in a piece": len(set(lines[0]))}
        tensors, numbers = _make_inputs(heads * size, lines)
        answer = part.call(attend, *tensors, heads, numbers, case=name)
        ways = {way: variant(*tensors, heads, numbers) for way, variant in VARIANTS.items()}
        right = make_attend()(*tensors, heads, numbers)
        cases.append(Case(name, answer, right, ways, knobs=knobs))
        if isinstance(answer, torch.Tensor) and torch.equal(answer.isnan(), ways["not-itself"].isnan()):
            raise part.wrong("not-itself", name)
        if isinstance(answer, torch.Tensor) and answer.shape == right.shape and len(lines[0]) > 1:
            gradients = _find_gradients(part, answer, tensors, name)
            right_gradients = _find_gradients(part, right, tensors, name)
            detached_gradients = [torch.zeros_like(right_gradients[0]), *right_gradients[1:]]
            gradient_cases.append(
                Case(f"{name}: gradients of query, key and value", gradients, right_gradients, {"detached": detached_gradients})
            )
    part.compare(cases, tolerance=1e-5)
    part.compare(gradient_cases, tolerance=1e-5)
    part.note(f"values and gradients are right for {len(SETTINGS)} shapes, with one line and with several")


def _make_inputs(width: int, lines: list[list[int]]) -> tuple[list[torch.Tensor], torch.Tensor]:
    source = torch.Generator().manual_seed(width)
    shape = (len(lines), len(lines[0]), width)
    return [(2 * torch.randn(shape, generator=source, dtype=torch.float64)).requires_grad_() for _ in range(3)], torch.tensor(
        lines
    )


def _find_gradients(part: Part, result: torch.Tensor, tensors: list[torch.Tensor], case: str) -> list[torch.Tensor]:
    if not result.requires_grad:
        return [torch.zeros_like(tensor) for tensor in tensors]
    weights = torch.linspace(-1, 2, result.numel()).view(result.shape)
    gradients = part.call(
        torch.autograd.grad, (result * weights).sum(), tensors, retain_graph=True, allow_unused=True, case=case
    )
    return [torch.zeros_like(x) if gradient is None else gradient for x, gradient in zip(tensors, gradients, strict=True)]


def make_attend(
    *,
    later: int | None = 0,
    other_lines: bool = False,
    divisor: Callable[[int, int], float] = lambda size, _width: math.sqrt(size),
    one_head: bool = False,
    split: str = "right",
    join: str = "right",
    hidden: float = -math.inf,
    mask_after: bool = False,
    over: int = -1,
) -> Callable[..., torch.Tensor]:
    """Return a right attention, or one with the mistake that the keyword arguments describe. `later` is the number of later
    characters that it looks at, None for all of them."""

    def attend(query: Any, key: Any, value: Any, heads: int, lines: torch.Tensor) -> torch.Tensor:
        batch, length, width = query.shape
        heads = 1 if one_head else heads
        size = width // heads

        def separate(x: torch.Tensor) -> torch.Tensor:
            if split == "mixed":
                return x.reshape(batch, heads, length, size)
            return x.view(batch, length, heads, size).transpose(1, 2)

        query, key, value = map(separate, (query, key, value))
        visible = torch.ones(length, length, dtype=torch.bool)
        visible = visible if later is None else visible.tril(later)
        visible = (visible | torch.zeros_like(lines, dtype=torch.bool)[:, :, None]) & (
            (lines[:, :, None] == lines[:, None, :]) | torch.tensor(other_lines)
        )
        scores = query @ key.transpose(-2, -1) / divisor(size, width)
        if mask_after:
            weights = scores.softmax(dim=-1) * visible[:, None]
        else:
            weights = scores.masked_fill(~visible[:, None], hidden).softmax(dim=over)
        result = (weights.nan_to_num() if over == -2 else weights) @ value
        return (result if join == "mixed" else result.transpose(1, 2)).reshape(batch, length, width)

    return attend


VARIANTS = {
    "sees-the-future": make_attend(later=None),
    "sees-other-lines": make_attend(other_lines=True),
    "no-mask": make_attend(later=None, other_lines=True),
    "not-itself": make_attend(later=-1),
    "one-ahead": make_attend(later=1),
    "not-scaled": make_attend(divisor=lambda _size, _width: 1.0),
    "scaled-by-the-width": make_attend(divisor=lambda _size, width: math.sqrt(width)),
    "scaled-without-root": make_attend(divisor=lambda size, _width: size),
    "one-head": make_attend(one_head=True),
    "heads-mixed": make_attend(split="mixed"),
    "results-mixed": make_attend(join="mixed"),
    "masked-with-zero": make_attend(hidden=0.0),
    "masked-after-softmax": make_attend(mask_after=True),
    "softmax-over-queries": make_attend(over=-2),
}
