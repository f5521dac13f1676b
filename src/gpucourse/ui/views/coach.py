"""What the failure coach says, on the screen: the symptom, why it is, by which lines it was recognised, what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from gpucourse.model.diagnosis import Diagnosis, Quote
from gpucourse.ui.tables import Cell, Part, facts

SHOWN = 2  # quotes


def diagnoses(found: Sequence[Diagnosis]) -> list[Part]:
    """Each diagnosis as facts, the likeliest first."""
    return [_diagnosis(each, "Diagnosis" if number == 0 else "Besides") for number, each in enumerate(found)]


def _diagnosis(found: Diagnosis, title: str) -> Part:
    return facts(
        [
            ("symptom", Cell(f"{found.title} [{found.symptom}]", "bad")),
            ("seen", "\n".join(_quoted(quote) for quote in found.seen[:SHOWN])),
            ("why", found.why),
            ("next", Cell(found.next, "accent")),
        ],
        title=title,
    )


def _quoted(quote: Quote) -> str:
    who = "launcher" if quote.rank is None else f"rank {quote.rank}"
    line = quote.line if len(quote.line) <= 160 else f"{quote.line[:157]}..."
    return f"{quote.node} {who}: {line}"
