"""Judge a repaired copy: only the last token of each request is multiplied by the vocabulary."""

from __future__ import annotations

from cards import Card

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("with a vocabulary of 64 more tokens, a prompt of {new} tokens costs {more:,} operations more, not {right:,}")
}


def judge(part: Part) -> None:
    """Require that the cost of the vocabulary does not depend on the length of a prompt."""
    module = part.module
    for new in (1, 20):
        cards = [Card(1, 32, 4, 2, 8, 48, vocabulary, 0, "made up") for vocabulary in (64, 128)]
        operations = [part.call(module.count_step, part.call(module.Decoder, card), [(0, new)]).operations for card in cards]
        more, right = operations[1] - operations[0], 2 * 32 * 64
        if more != right:
            raise part.wrong("still", new=new, more=more, right=right)
    part.note("a prompt of 20 tokens is multiplied by the vocabulary once, like a prompt of 1 token")
