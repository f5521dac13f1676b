"""What the failure coach says, on the screen: the symptom, why it is, by which lines it was recognised, what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from gpucourse.model.diagnosis import Diagnosis, LogQuote
from gpucourse.ui.tables import Block, Cell, facts

SHOWN = 2  # quotes


def diagnoses(diagnosis_list: Sequence[Diagnosis]) -> list[Block]:
    """Each diagnosis as facts, the likeliest first."""
    return [_diagnosis(diagnosis, "Diagnosis" if number == 0 else "Besides") for number, diagnosis in enumerate(diagnosis_list)]


def _diagnosis(diagnosis: Diagnosis, title: str) -> Block:
    return facts(
        [
            ("symptom", Cell(f"{diagnosis.title} [{diagnosis.symptom}]", "bad")),
            ("seen", "\n".join(_quote_line(quote) for quote in diagnosis.seen[:SHOWN])),
            ("why", diagnosis.why),
            ("next", Cell(diagnosis.next, "accent")),
        ],
        title=title,
    )


def _quote_line(quote: LogQuote) -> str:
    who = "launcher" if quote.rank is None else f"rank {quote.rank}"
    line = quote.line if len(quote.line) <= 160 else f"{quote.line[:157]}..."
    return f"{quote.node} {who}: {line}"
