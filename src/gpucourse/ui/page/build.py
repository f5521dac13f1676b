"""Build every file of the page: the course with its progress, the book, the exercises and the runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.learning.pages.open_ import PageContent
from gpucourse.learning.pages.run_content import RunReader
from gpucourse.learning.show import still_open
from gpucourse.model.manifest import Exercise, Module
from gpucourse.model.score import Signs
from gpucourse.outside.files import file_inside, read_bounded
from gpucourse.outside.names import OutsideError
from gpucourse.runs.parts import list_part_files, read_part_results
from gpucourse.ui.page.lessons import LessonPage, render_lesson
from gpucourse.ui.page.markup import File, render
from gpucourse.ui.page.other_pages import ComparedRuns, build_costs, build_report, build_side_by_side, build_sweeps
from gpucourse.ui.page.run_pages import build_run, describe_run, list_runs
from gpucourse.ui.views import course
from gpucourse.ui.views.parts import list_parts

if TYPE_CHECKING:
    from gpucourse.labs.aws.cost import Cost

MAX_PICTURE_BYTES = 1 << 20  # the largest picture of a lesson


@dataclass(frozen=True, kw_only=True)
class BookPart:
    """One part of a module's lesson, as a file of the book."""

    module: Module
    number: int
    of: int
    file: str
    lesson: LessonPage


def build(context: Context, content: PageContent, costs: Cost | None = None) -> Iterator[File]:
    """Yield every file of the page, beginning with the first page. `costs` is the cost of labs on AWS, or None if there were no
    such labs."""
    yield _build_index(content)
    parts = list(_list_parts(context, content))
    yield from _build_book(content, parts)
    runs = list_runs(content.records)
    yield render("runs.html", "runs.html", title="Runs", runs=runs, damaged=content.damaged)
    yield build_sweeps(content)
    yield build_costs(content, costs)
    yield build_report(context)
    reader, compared = RunReader(context), dict[str, ComparedRuns]()
    for record in reversed(content.records):
        run = reader.read(record)
        yield build_run(run)
        if run.exercise is not None and run.metrics:
            compared.setdefault(record.exercise, ComparedRuns(run.exercise)).add(run)
    for module in content.syllabus.modules:
        for exercise in module.exercises:
            comparison = compared.get(exercise.id)
            page = build_side_by_side(comparison) if comparison and len(comparison.runs) > 1 else None
            yield from [page] if page else []
            yield _build_exercise(context, content, module, exercise, page[0] if page else "")


def lesson_file(module_id: str, number: int = 1) -> str:
    """Return the file of one part of a module's lesson."""
    return f"book/{module_id}-{number}.html"


def _build_index(content: PageContent) -> File:
    syllabus = content.syllabus
    signs = syllabus.points.signs if syllabus.points else {}
    points = {part.module: part for part in syllabus.points.parts} if syllabus.points else {}
    rows = [_describe_module(content, module, signs) | {"points": points.get(module.id)} for module in syllabus.modules]
    numbers = [exercise.id for module in syllabus.modules for exercise in module.exercises]
    return render(
        "index.html",
        "index.html",
        title="The course",
        modules=rows,
        next=content.next_step,
        points=syllabus.points,
        done=sum(number in signs and signs[number].is_done for number in numbers),
        total=len(numbers),
        broken=[text for error in syllabus.broken for text in error.complaints],
    )


def _describe_module(content: PageContent, module: Module, signs: dict[str, Signs]) -> dict[str, object]:
    newest = {record.exercise: describe_run(record) for record in content.records if not record.own_script}
    exercises = [_describe_exercise(item, signs.get(item.id)) | {"newest": newest.get(item.id)} for item in module.exercises]
    done_count = sum(item.id in signs and signs[item.id].is_done for item in module.exercises)
    return {"module": module, "lesson": lesson_file(module.id), "exercises": exercises, "done": done_count}


def _describe_exercise(exercise: Exercise, signs: Signs | None) -> dict[str, object]:
    """Return an exercise with its signs, and its progress in one word."""
    values = (("ran", signs.ran), ("yours", signs.yours), ("answered", signs.answered)) if signs else ()
    marks = [(word, value) for word, value in values if value is not None]
    progress = "done" if signs and signs.is_done else "begun" if any(value for _, value in marks) else "open"
    return {"exercise": exercise, "signs": signs, "marks": marks, "progress": progress}


def _list_parts(context: Context, content: PageContent) -> Iterator[BookPart]:
    for module in content.syllabus.modules:
        texts = context.catalog.lesson_parts(module)
        folder = context.catalog.folder_name(module)

        def read_picture(name: str, folder: str = folder) -> bytes | None:
            try:
                return read_bounded(file_inside(context.folders.modules, f"{folder}/{name}"), MAX_PICTURE_BYTES)
            except (OSError, OutsideError):
                return None

        for number, text in enumerate(texts, 1):
            lesson = render_lesson(text, read_picture)
            yield BookPart(module=module, number=number, of=len(texts), file=lesson_file(module.id, number), lesson=lesson)


def _build_book(content: PageContent, parts: list[BookPart]) -> Iterator[File]:
    exercises = [exercise for module in content.syllabus.modules for exercise in module.exercises]
    yield render("search.html", "book.html", title="The book", parts=parts, exercises=exercises)
    for previous_part, part, next_part in zip([None, *parts], parts, [*parts[1:], None], strict=False):
        title = part.lesson.title
        yield render(
            "lesson.html", part.file, title=title, current="book.html", part=part, before=previous_part, after=next_part
        )


def _build_exercise(context: Context, content: PageContent, module: Module, exercise: Exercise, compared: str) -> File:
    """Return the page of an exercise: the contents of `show`, and the exercise's runs."""
    open_parts, answers, signs = still_open(context, exercise)
    part_blocks = list_parts(exercise, read_part_results(context, exercise), list_part_files(context, exercise))
    verdict = content.syllabus.progress.get(exercise.id)
    view = course.exercise(
        module, exercise, verdict, answers=answers, open_parts=open_parts, part_blocks=part_blocks, signs=signs
    )
    return render(
        "exercise.html",
        f"exercises/{exercise.id}.html",
        current="index.html",
        title=view.title,
        crumbs=[("The course", "index.html"), (f"Module {module.id}", lesson_file(module.id))],
        mode="",
        views=[view],
        footer=view.footer,
        runs=list_runs(content.list_runs(exercise.id)),
        compared=compared,
    )
