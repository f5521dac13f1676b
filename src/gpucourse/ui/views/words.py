"""Words that many screens share: verdicts and states with their colours, choices, and the actions that Terraform will take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpucourse.model.record import RunRecord
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Cell, Style

VERDICTS: dict[str, Style] = {"passed": "good", "failed": "bad", "error": "warn"}
_STATES: dict[str, Style] = {
    "succeeded": "good",
    "failed": "bad",
    "timed_out": "bad",
    "lost": "bad",
    "cancelled": "warn",
    "broken": "warn",
}
_ACTIONS = {"create": "to create", "delete": "to remove", "update": "to change", "replace": "to replace"}


def verdict_cell(verdict: str | None, suffix: str = "") -> Cell:
    """Return a verdict with its sign and its style, or a dash if there is none."""
    if verdict is None:
        return Cell(UNICODE.absent, "dim")
    return Cell(f"{UNICODE.mark(verdict)} {verdict.replace('_', ' ')}{suffix}", VERDICTS.get(verdict, "dim"))


def state_cell(record: RunRecord, suffix: str = "") -> Cell:
    """Return the state of a run in its style."""
    return Cell(f"{record.state.replace('_', ' ')}{suffix}", _STATES.get(record.state, "accent"))


def name_evidence(evidence: str) -> str:
    """Return where a check can be measured: on every lab, or on GPUs only."""
    return "GPUs only" if evidence == "gpu" else "every lab"


def list_choices(choices: Mapping[str, str]) -> list[str]:
    """Return the choices of a question, each with its letter."""
    return [f"{letter}. {text}" for letter, text in choices.items()]


def count_actions(actions: Sequence[str]) -> str:
    """Return how many resources Terraform will create, change or remove: `7 to create, 1 to remove`."""
    return ", ".join(f"{actions.count(action)} {_ACTIONS.get(action, action)}" for action in dict.fromkeys(actions))
