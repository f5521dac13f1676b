"""What a right answer counts, by the attempts before it, so that trying every option earns nothing.

A choice of n options counts 1 at the first attempt, and each wrong one takes 2 / (n - 1) from it; if it stays wrong, each wrong
attempt costs 1 / (n - 1). The mean over all ways to guess is then 0, however many attempts are made. A number counts 1 at the
first attempt and a half at the second. After two wrong attempts the answer is final.
"""

from __future__ import annotations

from gpucourse.model.questions import Question

MOST = 2
SECOND = 0.5


def count_attempts(question: Question) -> int:
    """Return how many attempts a question allows: a choice of two allows one, because after it the answer is known."""
    return min(MOST, len(question.options) - 1) if question.kind == "choice" else MOST


def compute_credit(question: Question, wrong: int, *, right: bool) -> float:
    """Return what an answer counts, from -1 to 1, after `wrong` wrong attempts; if it is wrong, it is one of them."""
    wrong = min(wrong, count_attempts(question))
    final = wrong == count_attempts(question)
    if question.kind != "choice":
        return 0.0 if final or not right else SECOND if wrong else 1.0
    step = 1 / (len(question.options) - 1)
    return 1.0 - 2 * wrong * step if right and not final else -wrong * step
