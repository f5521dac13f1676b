"""Read my_pipeline.yaml of 9.4: its values, its empty keys and its faults. The run and the judge use this."""

from __future__ import annotations

from decision_file import DecisionFile
from pipeline_choice import ALL_CHOICES, CHUNKS, PUZZLES, SCHEDULES, Choice

KEYS = "puzzle", "schedule", "chunks", "reasons"


class PipelineFile(DecisionFile):
    """The content of my_pipeline.yaml."""

    @property
    def choice(self) -> Choice | None:
        """Return the choice, or None if one of its keys is empty or wrong. `reasons` may be empty."""
        if not self.is_complete:
            return None
        return Choice(self.values["schedule"], self.values["chunks"])


def read_pipeline(document: object) -> PipelineFile:
    """Return a choice from the content of a YAML file.

    Faults are unknown keys, values of a wrong type or out of range, and a number of stages that the schedule does not have.
    """
    file = PipelineFile()
    file.read(document, KEYS, _find_fault, example="schedule: 1f1b")
    schedule, chunks = file.values.get("schedule"), file.values.get("chunks")
    if schedule is not None and chunks is not None and Choice(schedule, chunks) not in ALL_CHOICES:
        right = [str(choice.chunks) for choice in ALL_CHOICES if choice.schedule == schedule]
        file.faults.append(f"chunks: a rank of {schedule} has {' or '.join(right)} stages, not {chunks}")
    return file


def _find_fault(key: str, value: object) -> str | None:
    if key == "schedule":
        is_name = isinstance(value, str) and value in SCHEDULES
        return None if is_name else f"schedule: {value} is not one of {', '.join(SCHEDULES)}"
    if key == "chunks":
        is_known = isinstance(value, int) and not isinstance(value, bool) and value in CHUNKS
        return None if is_known else f"chunks: {value} is not one of {', '.join(map(str, CHUNKS))}"
    if key == "puzzle":
        is_number = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= PUZZLES
        return None if is_number else f"puzzle: {value} is not a whole number from 1 to {PUZZLES}"
    return None if isinstance(value, str) else f"{key}: {value} is not text"
