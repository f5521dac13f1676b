"""`open`: the content of a workspace's page, from the functions behind `list`, `next`, `runs` and `show`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.learning.list_ import Syllabus, list_course
from gpucourse.learning.next_ import NextStep, find_next_step
from gpucourse.learning.pages.sweeps import SweepContent, list_sweeps
from gpucourse.model.deployment import Receipt
from gpucourse.model.event import Note
from gpucourse.model.record import RunRecord
from gpucourse.workspace import deployments, runs


@dataclass(frozen=True, kw_only=True)
class PageContent:
    """The content of all pages: the syllabus, every run, sweep and receipt, and a sentence for each unreadable item.

    The next step is None if it is not known. Runs and receipts are oldest first; sweeps are newest first.
    """

    syllabus: Syllabus
    next_step: NextStep | None
    records: Sequence[RunRecord]
    damaged: Sequence[str]
    sweeps: Sequence[SweepContent]
    damaged_sweeps: Sequence[str]
    receipts: Sequence[Receipt]
    damaged_receipts: Sequence[str]

    def list_runs(self, exercise: str) -> list[RunRecord]:
        """Return the runs of one exercise, oldest first. The learner's own scripts belong to no exercise."""
        return [record for record in self.records if record.exercise == exercise and not record.own_script]


def open_(context: Context) -> PageContent:
    """Read the content of the workspace's page, without contacting a node or changing anything."""
    records, errors = runs.readable(context.paths)
    try:
        step = find_next_step(context)
    except GpucourseError as error:
        context.watch(Note(text=f"the next step is not known: {error.what}", level="warning"))
        step = None
    sweeps, damaged_sweeps = list_sweeps(context)
    receipts, damaged_receipts = deployments.list_receipts(context.paths)
    return PageContent(
        syllabus=list_course(context),
        next_step=step,
        records=records,
        damaged=[error.what for error in errors.values()],
        sweeps=sweeps,
        damaged_sweeps=damaged_sweeps,
        receipts=receipts,
        damaged_receipts=[error.what for error in damaged_receipts],
    )
