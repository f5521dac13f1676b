"""The frame around every page: the side bar with the modules, their points and their exercises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gpucourse.learning.list_ import Syllabus
from gpucourse.ui.page.markup import File, render

if TYPE_CHECKING:
    from gpucourse.model.manifest import Exercise, Module
    from gpucourse.model.score import ModuleScore, RowScore, Signs


class Link(NamedTuple):
    """The target of a link: the path of a file in the page's folder, and the title to show."""

    place: str
    title: str


@dataclass(frozen=True, kw_only=True)
class ExerciseProgress:
    """An exercise with its signs of progress and its points in the whole course."""

    exercise: Exercise
    signs: Signs | None
    points: RowScore | None = None

    @property
    def marks(self) -> list[tuple[str, bool]]:
        """Return the steps that the exercise requires (`ran`, `yours`, `answered`), each with whether the learner has
        completed it."""
        signs = self.signs
        values = (("ran", signs.ran), ("yours", signs.yours), ("answered", signs.answered)) if signs else ()
        return [(word, value) for word, value in values if value is not None]

    @property
    def progress(self) -> str:
        """Return the state of the exercise in one word: done, begun or open."""
        if self.signs and self.signs.is_done:
            return "done"
        return "begun" if any(value for _, value in self.marks) else "open"

    @property
    def link(self) -> Link:
        """Return the exercise's page."""
        return Link(exercise_file(self.exercise.id), f"{self.exercise.id} {self.exercise.title}")


@dataclass(frozen=True, kw_only=True)
class ModuleProgress:
    """A module with its points in the whole course and its exercises. `lessons` are the pages of its lesson; there is at least
    one.
    """

    module: Module
    points: ModuleScore | None
    exercises: Sequence[ExerciseProgress]
    lessons: Sequence[Link]

    @property
    def done(self) -> int:
        """Return how many exercises are done."""
        return sum(item.progress == "done" for item in self.exercises)


class Frame:
    """The modules of the course with the learner's progress. This class renders pages with the side bar around them."""

    def __init__(self, syllabus: Syllabus, lessons: Sequence[tuple[str, Link]]) -> None:
        signs = syllabus.points.signs if syllabus.points else {}
        scores = {module.module: module for module in syllabus.points.whole_course.modules} if syllabus.points else {}
        rows = {row.id: row for score in scores.values() for row in score.rows}
        self.modules = {
            module.id: ModuleProgress(
                module=module,
                points=scores.get(module.id),
                exercises=[
                    ExerciseProgress(exercise=item, signs=signs.get(item.id), points=rows.get(item.id))
                    for item in module.exercises
                ],
                lessons=[link for number, link in lessons if number == module.id],
            )
            for module in syllabus.modules
        }
        self.exercises = [item for row in self.modules.values() for item in row.exercises]
        self._module_of = {item.exercise.id: row.module.id for row in self.modules.values() for item in row.exercises}

    def render(
        self,
        template: str,
        place: str,
        *,
        title: str,
        in_module: str = "",
        in_exercise: str = "",
        around: tuple[Link | None, Link | None] = (None, None),
        **values: Any,
    ) -> File:
        """Return a page made from `template`, with the side bar around it. The side bar marks the page's module or exercise.
        `around` has the previous and the next page."""
        location = (in_module or self._module_of.get(in_exercise, ""), in_exercise)
        return render(template, place, title=title, side=self.modules.values(), here=location, around=around, **values)


def exercise_file(exercise_id: str) -> str:
    """Return the file of an exercise's page."""
    return f"exercises/{exercise_id}.html"


def find_neighbours(links: Sequence[Link]) -> dict[str, tuple[Link | None, Link | None]]:
    """Return, for the file of each link, the links before and after that link."""
    predecessors, successors = [None, *links], [*links[1:], None]
    return {link.place: (predecessors[index], successors[index]) for index, link in enumerate(links)}
