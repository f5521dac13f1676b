"""A bundle with its points, as counted on this computer, and with what was edited."""

from __future__ import annotations

from dataclasses import dataclass

from gpucourse.grading.edits import FileEdit, count_script_lines
from gpucourse.learning.bundle import OpenBundle
from gpucourse.learning.grade import grade
from gpucourse.learning.review.edits import list_all_edits
from gpucourse.model.score import Grade


@dataclass(frozen=True, kw_only=True)
class GradedBundle:
    """`edits` are those behind the runs that count, by the exercise's number."""

    bundle: OpenBundle
    grade: Grade
    edits: dict[str, tuple[FileEdit, ...]]

    @property
    def edited_lines(self) -> int:
        """Return how many lines of the course's own scripts were changed."""
        return count_script_lines(self.edits)


def grade_bundle(bundle: OpenBundle) -> GradedBundle:
    """Return the points of an open bundle, from its evidence. Raises ManifestError if the rubric is wrong."""
    return GradedBundle(bundle=bundle, grade=grade(bundle.context), edits=list_all_edits(bundle.context))
