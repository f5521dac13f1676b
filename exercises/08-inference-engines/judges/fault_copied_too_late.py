"""Judge a repaired copy: a page is copied before new tokens are written."""

from __future__ import annotations

from typing import Any

from gpucourse.judge import Part, Way

SIZES = {"prompt": 6, "answer": 3, "samples": 3}
WAYS = {
    "still": Way(
        "three answers over a prompt of 6 tokens, in pages of 4: the scores are off by {off:.1g}. When the page is copied, the "
        "first answer has already written its token into it"
    )
}
REPAIRS = [
    (
        "        results = paged.compute(rows)\n"
        "        for source, target in copies:\n            paged.copy_page(source, target)\n",
        "        while copies:\n            paged.copy_page(*copies.pop())\n            copied += 1\n"
        "        results = paged.compute(rows)\n",
    )
]


def judge(part: Part) -> None:
    """Judge the scores of three answers that share the pages of their prompt."""
    follow: Any = part.function("follow_answers")
    planned = part.call(part.function("Planned"), 4, **SIZES)
    result = part.call(follow, planned, planned.pages, page=4, **SIZES)
    if not result["logits_off"] <= 1e-9:
        raise part.wrong("still", off=result["logits_off"])
    part.note("every answer has the scores of its text alone")
