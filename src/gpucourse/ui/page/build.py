"""Build every file of the page: the course with its progress, the book, the exercises and the runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.learning.list_ import Syllabus, list_course
from gpucourse.learning.pages.open_ import PageContent
from gpucourse.learning.pages.run_content import RunContent, RunReader
from gpucourse.learning.show import list_open_work
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.record import RunRecord
from gpucourse.outside.files import file_inside, read_bounded
from gpucourse.outside.names import OutsideError
from gpucourse.runs.parts import list_part_files, read_part_results
from gpucourse.ui.page.frame import Frame, Link, exercise_file, find_neighbours
from gpucourse.ui.page.lessons import LessonPage, render_lesson
from gpucourse.ui.page.markup import File
from gpucourse.ui.page.other_pages import ComparedRuns, build_costs, build_report, build_side_by_side, build_sweeps
from gpucourse.ui.page.overlay import NewestRuns
from gpucourse.ui.page.run_pages import build_run, build_run_list, describe_run, list_runs, place_of
from gpucourse.ui.views import course
from gpucourse.ui.views.parts import list_parts
from gpucourse.workspace import runs

if TYPE_CHECKING:
    from gpucourse.labs.aws.cost import Cost

MAX_PICTURE_BYTES = 1 << 20  # the largest picture of a lesson


@dataclass(frozen=True, kw_only=True)
class BookPart:
    """One part of a module's lesson. The book is the sequence of all these parts, one file each."""

    module: Module
    number: int
    total: int
    file: str
    lesson: LessonPage

    @property
    def link(self) -> Link:
        """Return the page of this part."""
        return Link(self.file, self.lesson.title)

    @property
    def short_link(self) -> Link:
        """Return the same page with a title for the side bar: without the module, such as `One model on all ranks`."""
        return Link(self.file, self.lesson.title.rpartition(" · ")[2])


def build(context: Context, content: PageContent, costs: Cost | None = None) -> Iterator[File]:
    """Yield every file of the page, beginning with `index.html`. `costs` is the cost of labs on AWS, or None if there were no
    such labs."""
    parts = list(_list_parts(context, content.syllabus))
    frame = _make_frame(content.syllabus, parts)
    yield _build_index(frame, content)
    yield from _build_book(frame, parts)
    yield build_run_list(frame, content.records, content.damaged)
    yield build_sweeps(frame, content)
    yield build_costs(frame, content, costs)
    yield build_report(frame, context)
    reader, compared = RunReader(context), dict[str, ComparedRuns]()
    pages = RunPages(frame, content.records, reader)
    for record in reversed(content.records):
        run = reader.read(record)
        yield pages.build(run)
        if run.exercise is not None and run.metrics:
            compared.setdefault(record.exercise, ComparedRuns(run.exercise)).add(run)
    links = find_neighbours([item.link for item in frame.exercises])
    for module in content.syllabus.modules:
        for exercise in module.exercises:
            comparison = compared.get(exercise.id)
            page = build_side_by_side(frame, comparison) if comparison and len(comparison.runs) > 1 else None
            yield from [page] if page else []
            around = links[exercise_file(exercise.id)]
            yield _build_exercise(frame, context, content, module, exercise, around, page[0] if page else "")


def build_runs(context: Context, run_ids: Collection[str]) -> Iterator[File]:
    """Yield the list of runs, and the pages of the runs with these ids."""
    records, errors = runs.readable(context.paths)
    syllabus, reader = list_course(context), RunReader(context)
    frame = _make_frame(syllabus, list(_list_parts(context, syllabus)))
    yield build_run_list(frame, records, [error.what for error in errors.values()])
    pages = RunPages(frame, records, reader)
    for record in records:
        if record.id in run_ids:
            yield pages.build(reader.read(record))


def _make_frame(syllabus: Syllabus, parts: Sequence[BookPart]) -> Frame:
    return Frame(syllabus, [(part.module.id, part.short_link) for part in parts])


def lesson_file(module_id: str, number: int = 1) -> str:
    """Return the file of one part of a module's lesson."""
    return f"book/{module_id}-{number}.html"


def _build_index(frame: Frame, content: PageContent) -> File:
    syllabus = content.syllabus
    return frame.render(
        "index.html",
        "index.html",
        title="The course",
        newest={record.exercise: describe_run(record) for record in content.records if not record.own_script},
        next=content.next_step,
        points=syllabus.points,
        done=sum(row.done for row in frame.modules.values()),
        total=len(frame.exercises),
        broken=[text for error in syllabus.broken for text in error.complaints],
    )


class RunPages:
    """The pages of runs: each has links to the run before it and the run after it, and its charts can show the newest runs of
    its exercise as well."""

    def __init__(self, frame: Frame, records: Sequence[RunRecord], reader: RunReader) -> None:
        self._frame = frame
        self._links = find_neighbours([Link(place_of(record), f"{record.subject} {record.id}") for record in records])
        self._newest = NewestRuns(records, reader)

    def build(self, run: RunContent) -> File:
        """Return the page of one run."""
        around, other_runs = self._links[place_of(run.record)], self._newest.list_others(run.record)
        return build_run(run, self._frame, around=around, others=other_runs)


def _list_parts(context: Context, syllabus: Syllabus) -> Iterator[BookPart]:
    for module in syllabus.modules:
        texts = context.catalog.lesson_parts(module)
        folder = context.folders.modules / context.catalog.folder_name(module)
        names = (module.lesson, *module.further_lessons)
        pages = tuple((name, Path(lesson_file(module.id, number)).name) for number, name in enumerate(names, 1))
        for number, text in enumerate(texts, 1):
            lesson = _render_lesson(text, folder, pages)
            yield BookPart(module=module, number=number, total=len(texts), file=lesson_file(module.id, number), lesson=lesson)


@lru_cache(maxsize=256)
def _render_lesson(text: str, folder: Path, pages: tuple[tuple[str, str], ...]) -> LessonPage:
    """Return the page of one part of a lesson. Its pictures are in `folder`. `pages` has a pair for each part: the file of the
    lesson, and the page that a link to this file leads to.

    The result is cached, because `open --serve` builds the book many times.
    """

    def read_picture(name: str) -> bytes | None:
        try:
            return read_bounded(file_inside(folder, name), MAX_PICTURE_BYTES)
        except (OSError, OutsideError):
            return None

    return render_lesson(text, read_picture, dict(pages))


def _build_book(frame: Frame, parts: list[BookPart]) -> Iterator[File]:
    yield frame.render("search.html", "book.html", title="The book", parts=parts, exercises=frame.exercises)
    links = find_neighbours([part.link for part in parts])
    for part in parts:
        yield frame.render(
            "lesson.html",
            part.file,
            title=part.lesson.title,
            current="book.html",
            in_module=part.module.id,
            around=links[part.file],
            part=part,
            exercises=frame.modules[part.module.id].exercises,
        )


def _build_exercise(
    frame: Frame,
    context: Context,
    content: PageContent,
    module: Module,
    exercise: Exercise,
    around: tuple[Link | None, Link | None],
    compared: str,
) -> File:
    """Return the page of an exercise: the contents of `show`, and the exercise's runs."""
    open_parts, answers, signs = list_open_work(context, exercise)
    part_blocks = list_parts(exercise, read_part_results(context, exercise), list_part_files(context, exercise))
    verdict = content.syllabus.progress.get(exercise.id)
    view = course.exercise(
        module, exercise, verdict, answers=answers, open_parts=open_parts, part_blocks=part_blocks, signs=signs
    )
    return frame.render(
        "exercise.html",
        exercise_file(exercise.id),
        current="book.html",
        title=view.title,
        in_exercise=exercise.id,
        around=around,
        crumbs=[("The course", "index.html"), (f"Module {module.id}", lesson_file(module.id))],
        mode="",
        views=[view],
        footer=view.footer,
        runs=list_runs(content.list_runs(exercise.id)),
        compared=compared,
    )
