"""Judge the parts of an exercise that the learner writes, and keep the results that are handed in."""

from __future__ import annotations

import importlib.util
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from traceback import format_exception_only

from gpucourse.context import Context
from gpucourse.course import part_files
from gpucourse.course.rules import SHARED
from gpucourse.errors import MissingError, NewerFormat
from gpucourse.model.event import Note
from gpucourse.model.launching import advise_install
from gpucourse.model.manifest import Exercise, LearnerPart
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import CheckResult, ExerciseVerdict, KeptParts, PartResult, PartVerdict, choose_needed
from gpucourse.outside.names import printable
from gpucourse.units import format_bytes, now_utc
from gpucourse.workspace import runs, seals
from gpucourse.workspace.exercises import ensure_copies
from gpucourse.workspace.files import copy_file, read_record, write_record
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import RunPaths, WorkspacePaths

# The maximum size of a part in bytes, which limits the time of a comparison with its solutions. The course's parts have 3 KB.
MAX_PART_BYTES = 64 << 10


def read_part_results(context: Context, exercise: Exercise) -> tuple[PartResult, ...]:
    """Return the best handed-in result of each part, from a run or from `try`, in the manifest's order. Parts without such a
    result are open.

    A result counts only for the very file that was judged, and only if the learner has edited it. A wrong part is open again
    once the learner's own file equals the course's. A passed part becomes `error` if the run in its result did not use this
    file. No code of the learner runs. Raises NewerFormat if a newer gpucourse stored the results.
    """
    stored = _read_kept(context.paths, exercise.id).parts
    places = context.catalog.part_places(exercise)
    results: list[PartResult] = []
    for part in exercise.yours:
        result = _select_valid(context.paths, exercise.id, part, stored.get(part.id))
        files = [context.paths.yours_file(exercise.id, part.file)]
        if result is not None and result.verdict == "failed":
            files.append(context.paths.exercises / places[part.id])
        if result is None or any(is_as_delivered(context, exercise, part, file) for file in files):
            result = make_open(part)
        elif result.verdict == "passed" and (objection := _find_objection(context.paths, exercise, part, result)):
            result = make_doubtful(result, objection)
        results.append(result)
    return tuple(results)


def read_newest_results(paths: WorkspacePaths, exercise: Exercise) -> dict[str, PartResult]:
    """Return the newest verdict of a `try` or a run on each part that is not open, by the part's id. Raises NewerFormat if a
    newer gpucourse stored them."""
    stored = _read_kept(paths, exercise.id)
    return {**stored.parts, **stored.newest}


def make_doubtful(result: PartResult, objection: str) -> PartResult:
    """Return the passed result, changed to `error`. `objection`: the reason."""
    return replace(result, verdict="error", says=objection)


def _find_objection(paths: WorkspacePaths, exercise: Exercise, part: LearnerPart, result: PartResult) -> str:
    """Return why a passed part cannot count; empty if it can. The run's seal and its checks are not examined."""
    if not result.run:
        return "" if part.judge and not part.checks else f"a run checks it: gpucourse run {exercise.id}"
    try:
        record = runs.read(paths, exercise.id, result.run)
    except MissingError as error:
        return error.what
    if record is None:
        return f"its run {printable(result.run, 80)} is missing"
    files = runs.files_of(paths, record)
    if not record.is_judged or not _was_part_used(files, part) or seals.sha256(files.yours_file(part.file)) != result.sha256:
        return f"run {record.id} did not use this file"
    return ""


def make_open(part: LearnerPart, *, sha256: str = "", run: str = "") -> PartResult:
    """Return the result of a part that has not been written yet."""
    return PartResult(id=part.id, title=part.title, file=part.file, verdict="open", says=part.write, sha256=sha256, run=run)


def list_part_files(context: Context, exercise: Exercise) -> dict[str, Path]:
    """Return the learner's file of each part, by the part's id. Missing files are copied into the workspace, if there is a
    workspace."""
    places = context.catalog.part_places(exercise)
    if context.workspace.exists:
        ensure_copies(context.paths, context.folders.exercises, places.values())
    return {part: context.paths.exercises / place for part, place in places.items()}


def list_changed_files(context: Context, exercise: Exercise, record: RunRecord) -> list[str]:
    """Return the learner's files that the run used and that have changed since: parts, and other edited files. Return nothing
    for a drill or a learner's own script.
    """
    if record.own_script or record.drill:
        return []
    files, places = runs.files_of(context.paths, record), context.catalog.sources(exercise)
    copies = {name: files.edited_file(name) for name in record.edited if name in places}
    for part in exercise.yours:
        copies[part.file] = files.yours_file(part.file)
        places[part.file] = context.catalog.part_places(exercise)[part.id]
    return [
        name
        for name, copy in copies.items()
        if (digest := seals.sha256(copy)) and digest != seals.sha256(context.paths.exercises / places[name])
    ]


def is_as_delivered(context: Context, exercise: Exercise, part: LearnerPart, file: Path) -> bool:
    """Return whether `file` equals the part as the course delivers it."""
    return seals.sha256(file) == seals.sha256(_course_folder(context, exercise) / part.file)


def is_solution(context: Context, exercise: Exercise, part: LearnerPart, file: Path) -> bool:
    """Return whether the code in `file` equals a solution of the course, and is too long for that to be chance."""
    return part_files.is_solution(file, _course_folder(context, exercise) / part.file)


def judge_part(context: Context, exercise: Exercise, part: LearnerPart, file: Path) -> PartResult:
    """Return the verdict of the part's judge on `file`. A part that is unedited or has no judge is open, and a part that is not
    valid Python is wrong; no process is started for these.

    Raises MissingError if the part needs torch or a package that is not installed here.
    """
    if (fault := _find_fault(file)) is not None:
        return replace(make_open(part), verdict="failed", way=fault[0], says=fault[1])
    open_result = make_open(part, sha256=seals.sha256(file) or "")
    if not part.judge or is_as_delivered(context, exercise, part, file):
        return open_result
    if (syntax_error := part_files.find_syntax_error(file)) is not None and syntax_error.text:
        return replace(
            open_result,
            verdict="failed",
            way="not-python",
            says=f"{file.name}:{syntax_error.lineno}: {syntax_error.msg}",
            output="".join(format_exception_only(syntax_error)),
        )
    _check_packages(part)
    folder = _course_folder(context, exercise)
    reply = context.judge.judge(
        context.catalog.judge_file(exercise, part),
        file,
        torch=part.torch,
        limit_s=part.limit,
        path=(folder, context.folders.exercises / SHARED),
    )
    return replace(
        open_result,
        verdict=reply.word,
        way=reply.way,
        says=reply.says if reply.word != "open" else part.write,
        notes=reply.notes if reply.word != "open" else (reply.says,),
        case=reply.case,
        output=reply.output,
        seconds=reply.seconds,
    )


def _check_packages(part: LearnerPart) -> None:
    """Check that this computer has the packages that the part's judge needs in addition to torch. Raises MissingError."""
    if missing := [name for name in part.packages if importlib.util.find_spec(name) is None]:
        raise MissingError(
            f"{', '.join(missing)} is not installed on this computer",
            hint=advise_install(missing, sys.executable, on_this_computer=True),
        )


def keep_started_files(context: Context, exercise: Exercise, record: RunRecord, copies: Path | None = None) -> None:
    """Copy the learner's parts into the folder of a run that is about to start. These copies are judged later.

    `copies`: a folder with files that run instead of the learner's.
    """
    if record.own_script:
        return
    for part, own_file in zip(exercise.yours, list_part_files(context, exercise).values(), strict=True):
        file = copies / part.file if copies and (copies / part.file).is_file() else own_file
        if (fault := _find_fault(file)) is not None:
            context.watch(Note(text=f"your part is left out of this run: {fault[1]}", level="warning"))
            continue
        copy_file(file, runs.files_of(context.paths, record).yours_file(part.file))


def has_code(context: Context, exercise: Exercise, record: RunRecord) -> bool:
    """Return whether a run used a part that has a judge and that the learner has edited."""
    files = runs.files_of(context.paths, record)
    judged_parts = [(part, files.yours_file(part.file)) for part in exercise.yours if part.judge]
    return any(file.is_file() and not is_as_delivered(context, exercise, part, file) for part, file in judged_parts)


def judge_parts(
    context: Context, exercise: Exercise, record: RunRecord, checks: Sequence[CheckResult]
) -> tuple[PartResult, ...]:
    """Return the verdict on each part that counts, as the part was at the start of the run.

    The part's judge decides first, then the run's checks of the part.
    """
    files = runs.files_of(context.paths, record)
    results: list[PartResult] = []
    for part in exercise.yours:
        file = files.yours_file(part.file)
        if not _was_part_used(files, part):
            results.append(make_open(part, run=record.id))
            continue
        try:
            result = judge_part(context, exercise, part, file)
        except MissingError as error:
            sentence = f"{error.what}: {error.hint}" if error.hint else error.what
            result = replace(make_open(part, sha256=seals.sha256(file) or ""), verdict="error", says=sentence)
        if not is_as_delivered(context, exercise, part, file):
            result = add_checks(part, result, checks)
        results.append(replace(result, run=record.id))
    return choose_needed(exercise.yours, results)


def _was_part_used(files: RunPaths, part: LearnerPart) -> bool:
    """Return whether a run used the learner's part.

    It did not if an earlier version made the run, without parts, or if the course's own batch file was submitted instead.
    """
    if not files.yours_file(part.file).is_file():
        return False
    return not part.submit or files.batch(PurePath(part.file).stem).is_file()


def add_checks(part: LearnerPart, result: PartResult, checks: Sequence[CheckResult]) -> PartResult:
    """Return a part's result, combined with the run's checks of the part if the part has passed its judge or has none."""
    checks_of_part = [check for check in checks if check.id in part.checks]
    if not checks_of_part or (part.judge and result.verdict != "passed"):
        return result
    words: tuple[PartVerdict, ...] = ("failed", "error", "passed")
    word: PartVerdict = next((word for word in words if any(check.verdict == word for check in checks_of_part)), "open")
    first = next((check for check in checks_of_part if check.verdict == word), checks_of_part[0])
    if word == "passed":
        return replace(result, verdict="passed", says="")
    if word == "open":  # the script says that there is nothing to judge yet
        return replace(result, verdict="open", notes=(first.observed,))
    sentence = f"{first.title}: {first.observed}; expected: {first.expected}"
    return replace(result, verdict=word, way=first.id, says=sentence, notes=(first.hint,) if first.hint else ())


def add_stored_parts(context: Context, exercise: Exercise, record: RunRecord, verdict: ExerciseVerdict) -> ExerciseVerdict:
    """Return the verdict with the results of the parts as judged after the run. No code of the learner runs.

    If a part was unedited, its checks are marked as not measured, because they saw the course's own code.
    """
    files = runs.files_of(context.paths, record)
    try:
        stored = read_record(files.verdict, ExerciseVerdict)
    except MissingError:
        stored = None
    by_id = {result.id: result for result in stored.parts} if stored else {}
    unused_parts: dict[str, LearnerPart] = {}
    for part in exercise.yours:
        file = files.yours_file(part.file)
        if file.is_file() and (is_as_delivered(context, exercise, part, file) or not _was_part_used(files, part)):
            unused_parts |= dict.fromkeys(part.checks, part)
    checks = tuple(_mark_not_measured(check, unused_parts.get(check.id)) for check in verdict.checks)
    parts = [by_id.get(part.id) or make_open(part, run=record.id) for part in exercise.yours]
    return replace(verdict, checks=checks, parts=choose_needed(exercise.yours, parts))


def _mark_not_measured(check: CheckResult, part: LearnerPart | None) -> CheckResult:
    if part is None:
        return check
    return replace(check, verdict="not_measured", observed=f"your part {part.file} is open", hint=part.write)


def keep(
    context: Context, exercise: Exercise, judged_parts: Sequence[tuple[PartResult, Path]], *, rejudge: bool = False
) -> None:
    """Hand in these results, each with the file that was judged.

    A part that has passed stays passed, with its file: later attempts change nothing, unless the same file is judged again
    (`rejudge`). A part that is open or could not be judged replaces nothing. A part with checks of a run counts only after a
    run.
    """
    with hold_lock(context.paths.lock("yours"), f"keeping parts of {exercise.id}"):
        stored = _read_kept(context.paths, exercise.id)
        results, try_time = stored.parts, stored.tried
        if not rejudge and any(not result.run for result, _ in judged_parts):
            try_time = now_utc("milliseconds")
        new: dict[str, PartResult] = {}
        for part in exercise.yours:
            stored_result = _select_valid(context.paths, exercise.id, part, results.get(part.id))
            if stored_result is not None and _find_objection(context.paths, exercise, part, stored_result):
                stored_result = None  # for example because its run was removed; the new result replaces it
            result, file = next(((item, path) for item, path in judged_parts if item.id == part.id), (None, None))
            if result is None or file is None or result.verdict not in {"passed", "failed"} or not result.sha256:
                continue
            if part.checks and not result.run:
                continue
            if stored_result is not None and stored_result.verdict == "passed" and result.verdict == "failed" and not rejudge:
                continue
            if not rejudge:
                copy_file(file, context.paths.yours_file(exercise.id, part.file))
                if result.verdict == "passed" and is_solution(context, exercise, part, file):
                    text = f"{part.file} is the course's own solution: it earns no points until an instructor accepts it"
                    context.watch(Note(text=text, level="warning"))
            new[part.id] = result
        newest = {**stored.newest, **{result.id: result for result, _ in judged_parts if result.verdict != "open"}}
        if new or try_time != stored.tried or newest != stored.newest:
            kept_parts = KeptParts(parts={**results, **new}, tried=try_time, newest=newest)
            write_record(context.paths.yours(exercise.id), kept_parts)


def list_try_times(paths: WorkspacePaths) -> dict[str, str]:
    """Return the time at which `try` last judged a part of each exercise. Exercises that were never tried are left out."""
    numbers = [file.parent.name for file in paths.list_yours()]
    with suppress(NewerFormat):
        return {number: time for number in numbers if (time := _read_kept(paths, number).tried)}
    return {}


def find_last_tried(paths: WorkspacePaths) -> tuple[str, str]:
    """Return the time and the exercise of the newest `try`. Return two empty strings if there is none."""
    return max(((time, number) for number, time in list_try_times(paths).items()), default=("", ""))


def judge_kept_again(context: Context, exercise: Exercise) -> None:
    """Judge the handed-in parts again, with the course's current judges. A part that no longer passes is no longer marked as
    passed.

    A part that only a run checks keeps the result of that run. Raises MissingError if a judge needs a package that is not
    installed here.
    """
    results = _read_kept(context.paths, exercise.id).parts
    judged_parts: list[tuple[PartResult, Path]] = []
    for part in exercise.yours:
        stored_result = _select_valid(context.paths, exercise.id, part, results.get(part.id))
        if stored_result is None or part.checks or not part.judge:
            continue
        file = context.paths.yours_file(exercise.id, part.file)
        judged_parts.append((replace(judge_part(context, exercise, part, file), run=stored_result.run), file))
    if judged_parts:
        keep(context, exercise, judged_parts, rejudge=True)


def _course_folder(context: Context, exercise: Exercise) -> Path:
    return context.folders.exercises / context.catalog.folder_name(exercise)


def _find_fault(file: Path) -> tuple[str, str] | None:
    """Return why a file cannot be judged as a part (unreadable, not a plain file, or too large), as a name and a sentence.
    Return None if it can."""
    try:
        about = file.stat()
    except OSError as error:
        return "no-file", f"{file.name} cannot be read: {error.strerror}"
    if not stat.S_ISREG(about.st_mode):
        return "no-file", f"{file} is not a file: move it away, and the course's file replaces it"
    if about.st_size > MAX_PART_BYTES:
        size, limit = format_bytes(about.st_size), format_bytes(MAX_PART_BYTES)
        return "too-large", f"{file.name} has {size}, but a part may have at most {limit}"
    return None


def _read_kept(paths: WorkspacePaths, exercise_id: str) -> KeptParts:
    """Return the stored results of an exercise's parts, or no results if the file is damaged. Raises NewerFormat if a newer
    gpucourse wrote it."""
    try:
        return read_record(paths.yours(exercise_id), KeptParts) or KeptParts()
    except NewerFormat:
        raise
    except MissingError:
        return KeptParts()


def _select_valid(paths: WorkspacePaths, exercise_id: str, part: LearnerPart, result: PartResult | None) -> PartResult | None:
    """Return the stored result if it belongs to this part, and its file is valid and has not changed since it was judged."""
    if result is None or not result.sha256 or (result.id, result.file) != (part.id, part.file):
        return None
    file = paths.yours_file(exercise_id, part.file)
    return result if _find_fault(file) is None and seals.sha256(file) == result.sha256 else None
