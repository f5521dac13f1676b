"""Check that scripts and manifests agree and that every file is used, which a manifest alone does not show."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gpucourse.course import quiz, report_plan
from gpucourse.course.catalog import JUDGES, MANIFEST, Catalog
from gpucourse.course.gpu_record import FOLDER, find_faulty_records, list_files
from gpucourse.course.lesson_files import check_lessons
from gpucourse.course.locate import find_course
from gpucourse.course.part_files import SOLUTIONS, find_gaps, name_fault_judge, read_ways
from gpucourse.course.references import find_dead_references
from gpucourse.course.report_plan import read_report_plan
from gpucourse.course.rubric import find_exercises_above_the_limit, find_unknown_modules, read_rubric
from gpucourse.course.rules import CUDA_STARTER, PROFILER, SHARED
from gpucourse.course.schema import SCHEMAS, schema_text
from gpucourse.course.scripts import check_scripts, find_unwritten, list_chapter_paths, list_plot_paths, words_of
from gpucourse.course.written import format_complaints
from gpucourse.errors import ManifestError
from gpucourse.model.manifest import Exercise
from gpucourse.model.questions import Prediction, Question
from gpucourse.model.quiz import Quiz
from gpucourse.model.report_plan import SUBJECTS, ReportPlan
from gpucourse.model.rubric import Rubric
from gpucourse.outside.files import read_named
from gpucourse.outside.names import OutsideError
from gpucourse.outside.yaml_reader import MAX_BYTES, read_document

MIN_HINTS = 3
MIN_LENGTH_RATIO = 1.3
FEW_CHOICES = 4


def lint(catalog: Catalog) -> list[str]:
    """Return every error in the course, one line each: `file: place: reason`."""
    complaints = [line for error in catalog.errors for line in error.complaints]
    if not catalog.module_ids and not catalog.errors:
        complaints.append(
            f"{catalog.folders.modules.name}: contains no module, which is a folder such as 01-name with a {MANIFEST}"
        )
    complaints += _stale_schemas(catalog.folders.modules)
    complaints += _check_course_files(catalog)
    complaints += _check_unquoted_commas(catalog.folders.modules)
    exercises = catalog.folders.exercises
    complaints += (f"{exercises.name}/{text}" for text in find_faulty_records(exercises))
    used_names = {f"{SHARED}/{PROFILER}", f"{SHARED}/{CUDA_STARTER}", *(f"{FOLDER}/{name}" for name in list_files(exercises))}
    for module in catalog.modules:
        manifest = catalog.manifest_label(module)
        complaints += check_lessons(catalog, module)
        complaints += (f"{manifest}: {line}" for line in find_dead_references(catalog, module))
        for exercise in module.exercises:
            used_names |= set(catalog.sources(exercise).values())
            used_names |= set(catalog.part_places(exercise).values())
            complaints += _check_exercise(catalog, exercise)
            complaints += _check_parts(catalog, exercise)
    if not catalog.errors:
        complaints += _check_unused_files(catalog, used_names)
        complaints += _check_unused_judges(catalog)
        complaints += _solutions(catalog, used_names)
    return list(dict.fromkeys(complaints))  # complaints about shared files appear once


def _check_parts(catalog: Catalog, exercise: Exercise) -> Iterator[str]:
    """Yield the gaps in the parts that a learner writes, and a message if the exercise has no part."""
    places = catalog.part_places(exercise)
    if not exercise.yours:
        yield f"{catalog.manifest_label(exercise)}: {exercise.id}.yours: no part for the learner to write"
    for part in exercise.yours:
        label = f"{catalog.folders.exercises.name}/{places[part.id]}"
        file = catalog.folders.exercises / places[part.id]
        if part.judge:
            yield from (f"{label}: {gap}" for gap in find_gaps(file, catalog.judge_file(exercise, part)))
        known_ways = {*part.checks, *(_read_ways(catalog.judge_file(exercise, part)) if part.judge else ())}
        ways = {way for hint in exercise.hints if hint.part == part.id for way in hint.ways}
        if unknown_ways := sorted(ways - known_ways):
            yield f"{label}: a hint names neither a wrong way of the judge nor a check: {', '.join(unknown_ways)}"


def _read_ways(judge: Path) -> Collection[str]:
    """Return the wrong ways that a judge recognises. If the judge cannot be read, return an empty collection; `find_gaps`
    reports the error."""
    try:
        return read_ways(judge)
    except (OSError, SyntaxError, ValueError):
        return ()


def _check_course_files(catalog: Catalog) -> Iterator[str]:
    """Yield the errors in the rubric, the quiz and the report's plan, and the folders with the same module number."""
    modules = catalog.folders.modules
    for read in (read_rubric, quiz.read_quiz, read_report_plan):
        try:
            document = read(modules)
        except ManifestError as error:
            yield from error.complaints
            continue
        if isinstance(document, Rubric) and not catalog.errors:
            yield from (f"{modules.name}/{line}" for line in find_unknown_modules(document, catalog.modules))
            yield from (f"{modules.name}/{line}" for line in find_exercises_above_the_limit(document, catalog.modules))
        if isinstance(document, Quiz) and not catalog.errors:
            yield from (f"{modules.name}/{line}" for line in quiz.find_unknown_modules(document, catalog.modules))
        if isinstance(document, ReportPlan) and not catalog.errors:
            yield from (f"{modules.name}/{line}" for line in report_plan.find_unknown_modules(document, catalog.modules))
            yield from _check_unwritten_metrics(catalog, document)
    yield from _check_options(catalog)
    numbers = Counter(module.id for module in catalog.modules)
    yield from (f"{modules.name}: {count} folders are module {number}" for number, count in numbers.items() if count > 1)


def _check_options(catalog: Catalog) -> Iterator[str]:
    """Yield a message for each module, and for the quiz, if lengths or letters of options give away the right ones."""
    modules = catalog.folders.modules.name
    for module in catalog.modules:
        questions = [
            question
            for exercise in module.exercises
            for question in (*exercise.questions, *([exercise.predict] if exercise.predict else []))
        ]
        yield from (f"{catalog.manifest_label(module)}: {line}" for line in find_telling_options(questions))
    with suppress(ManifestError):  # reported when the quiz is read
        document = quiz.read_quiz(catalog.folders.modules)
        yield from (f"{modules}/quiz.yaml: {line}" for line in find_telling_options(document.questions if document else ()))


def find_telling_options(questions: Sequence[Question]) -> Iterator[str]:
    """Yield a sentence for each way to guess the right options of these questions without reading them. By length: in more
    than a third of the questions, the right option is the longest, and longer than `MIN_LENGTH_RATIO` times the shortest. By
    letter: more than half of the right options have the same letter. The options of a prediction with ranges may all be right
    in some run, so only their lengths are compared."""
    choices = [question for question in questions if question.kind == "choice"]
    longest = [question.id for question in choices if _is_longest(question)]
    if len(longest) > max(1, len(choices) // 3):
        yield f"the right option is the longest in {len(longest)} of {len(choices)} choices: {', '.join(longest)}"
    keys = [question.key for question in choices if question.key]
    letter, count = Counter(keys).most_common(1)[0] if keys else ("", 0)
    if len(keys) >= FEW_CHOICES and count > len(keys) / 2:
        yield f"{letter} is right in {count} of {len(keys)} choices: reorder the options of some"


def _is_longest(question: Question) -> bool:
    right_letters = set(question.ranges) if isinstance(question, Prediction) and question.ranges else {question.key}
    right_lengths = [len(text) for letter, text in question.choices.items() if letter in right_letters]
    wrong_lengths = [len(text) for letter, text in question.choices.items() if letter not in right_letters]
    return (
        bool(wrong_lengths)
        and min(right_lengths) > max(wrong_lengths)
        and min(right_lengths) > MIN_LENGTH_RATIO * min(wrong_lengths)
    )


def _check_unwritten_metrics(catalog: Catalog, plan: ReportPlan) -> Iterator[str]:
    """Yield the values that the report reads but that no script writes."""
    by_id = {exercise.id: exercise for exercise in catalog.exercises}
    for chapter in plan.chapters:
        if chapter.exercise not in by_id:  # reported as unknown
            continue
        exercise = by_id[chapter.exercise]
        words = words_of(catalog.folders.exercises / place for place in catalog.sources(exercise).values())
        label = f"{catalog.folders.modules.name}/{report_plan.FILE}: chapters.{chapter.id}"
        yield from (f"{label}: {line}" for line in find_unwritten(exercise, words, list_chapter_paths(chapter)))
        ids = {"subject", *(figure.id for figure in chapter.figures)}
        paths = {path for plot in chapter.charts for path in list_plot_paths(plot) if path.startswith(f"{SUBJECTS}.")}
        unknown_paths = sorted(paths - {f"{SUBJECTS}.{name}" for name in ids})
        yield from (f"{label}: charts: {path}: no figure of the chapter has this id" for path in unknown_paths)


def _check_unquoted_commas(modules: Path) -> Iterator[str]:
    """Yield the inline lists in which a comma may have split one sentence into two items."""
    for path in sorted([*modules.glob(f"[!._]*/{MANIFEST}"), *modules.glob("*.yaml")]):
        try:
            document = read_document(read_named(path, MAX_BYTES))
        except (OSError, OutsideError):  # reported when the file is used
            continue
        yield from format_complaints(path.relative_to(modules.parent).as_posix(), document, document.unquoted)


def _stale_schemas(modules: Path) -> Iterator[str]:
    """Yield the editor schemas that were written by another version of gpucourse. A course need not contain such schemas."""
    for file in SCHEMAS:
        path = modules / file
        if path.is_file() and path.read_text(encoding="utf-8") != schema_text(file):
            cure = f"gpucourse dev schema {shlex.quote(str(modules.parent))}"
            yield f"{modules.name}/{file}: is the schema of another gpucourse; type: {cure}"


def _check_exercise(catalog: Catalog, exercise: Exercise) -> Iterator[str]:
    manifest = catalog.manifest_label(exercise)
    if exercise.predict is None and exercise.no_predict is None:
        yield f"{manifest}: {exercise.id}: needs predict, or no_predict with the reason why nothing can be predicted"
    if len(exercise.tables) > 1 and not any(table.main for table in exercise.tables):
        yield f"{manifest}: {exercise.id}.tables: {len(exercise.tables)} tables, but none has main: true"
    if not exercise.checks:
        yield f"{manifest}: {exercise.id}.checks: no check says what must hold after a run"
    if len(exercise.hints) < MIN_HINTS:
        yield f"{manifest}: {exercise.id}.hints: has {len(exercise.hints)}, but needs at least {MIN_HINTS}"
    yield from (
        f"{manifest}: {exercise.id}.hints: the same hint appears twice: {hint[:60]}"
        for hint, count in Counter(hint.text for hint in exercise.hints).items()
        if count > 1
    )
    yield from (
        f"{manifest}: {exercise.id}.deliverables: {exercise.id} has no plot for {deliverable.source}"
        for deliverable in exercise.deliverables
        if deliverable.source.endswith((".png", ".svg"))
        and deliverable.source
        not in {"screen.svg", *(f"{plot.file}.{end}" for plot in exercise.plots for end in ("png", "svg"))}
        and not set("/*?[") & set(deliverable.source)
    )
    for question in exercise.questions:
        if question.kind == "mutation":
            label = f"{manifest}: {exercise.id}.questions.{question.id}"
            yield from _check_edit(catalog, exercise, label, str(question.edit), str(question.was))
    yield from _faults(catalog, exercise, manifest)
    yield from check_scripts(catalog, exercise)


def _faults(catalog: Catalog, exercise: Exercise, manifest: str) -> Iterator[str]:
    """Yield the errors in an exercise's code faults. Each fault must change a text that occurs once in a file of its exercise,
    and must have a judge.
    """
    for fault in exercise.faults:
        label = f"{manifest}: {exercise.id}.faults.{fault.id}"
        yield from _check_edit(catalog, exercise, label, fault.file, fault.was)
        judge = catalog.judge(exercise, name_fault_judge(fault))
        if not judge.is_file():
            yield f"{label}: there is no {judge.relative_to(catalog.folders.exercises.parent).as_posix()}"


def _check_edit(catalog: Catalog, exercise: Exercise, label: str, file: str, was: str) -> Iterator[str]:
    """Yield an error that begins with `label` if the exercise lacks the edited file, or if the edited text does not occur
    exactly once in that file."""
    sources = catalog.sources(exercise)
    if file not in sources:
        yield f"{label}: {file} is not a file of {exercise.id}"
        return
    count = (catalog.folders.exercises / sources[file]).read_text(encoding="utf-8").count(was)
    if count != 1:
        yield f"{label}: the text that it changes occurs {count} times in {file}, but must occur once"


def _check_unused_files(catalog: Catalog, used_places: set[str]) -> Iterator[str]:
    folders = {catalog.folder_name(module) for module in catalog.modules} | {SHARED}
    for path in sorted(catalog.folders.exercises.rglob("*")):
        place = path.relative_to(catalog.folders.exercises)
        is_hidden = {SOLUTIONS, JUDGES, "__pycache__"} & set(place.parts) or path.name.startswith(".")
        if path.is_dir() or is_hidden or place.as_posix() in used_places:
            continue
        if place.parts[0] == SHARED and _is_helper(path):
            continue
        reason = "no exercise uses it" if place.parts[0] in folders else "is in a folder that belongs to no module"
        yield f"{catalog.folders.exercises.name}/{place.as_posix()}: {reason}"


def _is_helper(path: Path) -> bool:
    """Return whether a file is a helper of gpucourse that exercises share and that `dev new` copies."""
    delivered = find_course({}).exercises / SHARED / path.name
    return delivered.is_file() and delivered.read_bytes() == path.read_bytes()


def _check_unused_judges(catalog: Catalog) -> Iterator[str]:
    """Yield the judge files that belong to no part and no fault."""
    exercises = catalog.folders.exercises
    used_judges = {
        judge
        for exercise in catalog.exercises
        for judge in (
            *(catalog.judge_file(exercise, part) for part in exercise.yours),
            *(catalog.judge(exercise, name_fault_judge(fault)) for fault in exercise.faults),
        )
    }
    for path in sorted(exercises.glob(f"*/{JUDGES}/*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if path not in used_judges and "def judge(" in text:
            yield f"{exercises.name}/{path.relative_to(exercises).as_posix()}: judges neither a part nor a fault"


def _solutions(catalog: Catalog, used_places: set[str]) -> Iterator[str]:
    """Yield the errors in the course's solutions. Each solution must have the name of a file that an exercise uses, and must
    differ from that file."""
    exercises = catalog.folders.exercises
    for path in sorted(exercises.glob(f"*/{SOLUTIONS}/*")):
        stub = path.parent.parent / path.name
        label = f"{exercises.name}/{path.relative_to(exercises).as_posix()}"
        if path.name.startswith((".", "__")) or path.is_dir():
            continue
        if stub.relative_to(exercises).as_posix() not in used_places:
            yield f"{label}: no exercise uses a file of this name"
        elif stub.read_bytes() == path.read_bytes():
            yield f"{label}: is the same as {stub.relative_to(exercises.parent).as_posix()}, so there is nothing to solve"
