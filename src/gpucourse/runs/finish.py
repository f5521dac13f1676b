"""Finish a run: collect outputs and metrics, draw plots, judge, and store deliverables and checksums.

The work can be repeated after any interruption.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucourse.context import Context
from gpucourse.course.gpu_record import find_recorded_plots
from gpucourse.errors import MissingError, NodeUntrusted, UnreachableError, UsageError
from gpucourse.figures.overlay import RecordedPlot
from gpucourse.figures.plots import draw
from gpucourse.grading.checks import is_gpu_evidence
from gpucourse.model.event import Note, Watcher, stage
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import is_simulated
from gpucourse.model.record import MAX_LISTED, RefusedFile, RunRecord, find_end_state
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.runs import diagnose, parts, slurm
from gpucourse.runs.mutations import is_as_predicted
from gpucourse.runs.results import judge_own_checks, read_handed_in_verdict, verdict_on
from gpucourse.workspace import runs, seals
from gpucourse.workspace.files import changing, copy_file, read_metrics, write_record
from gpucourse.workspace.paths import RunPaths, WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.remote.fleet import Fleet
    from gpucourse.remote.unpack import MissingOutputs

_MAX_NOTES = 20
"""The maximum number of uncollected files to list by name on the screen."""

_JUDGING = threading.Lock()
"""A lock that is held while the plots of one run are drawn and the run is judged, because there is only one judging process,
and matplotlib is not thread-safe. Several runs may be collected in parallel."""


def finish(context: Context, fleet: Fleet, record: RunRecord, *, until: float | None = None) -> ExerciseVerdict | None:
    """Fetch the outputs of a run from its nodes, then judge it. Return the verdict, or None if the run did not succeed.

    `until`: the time on the monotonic clock at which collecting stops in any case.

    Raises UnreachableError if a node's outputs cannot be collected, and NodeUntrusted if a node sends invalid data. The run is
    then stored as `collecting` without a verdict, so that the next command tries again.
    """
    files = runs.files_of(context.paths, record)
    files.hashes.unlink(missing_ok=True)  # only a run that has ended is sealed; a run without a seal is under way
    record.state = "collecting"
    runs.save(context.paths, record)
    _, exercise = context.catalog.exercise(record.exercise)
    with stage(context.watch, "collect", "collecting outputs", record.phases_s):
        digests = _collect(context, fleet, record, exercise, files, until)
    with _JUDGING:
        return _judge_and_hand_in(context, record, exercise, files, digests)


def _judge_and_hand_in(
    context: Context, record: RunRecord, exercise: Exercise, files: RunPaths, digests: Mapping[str, str]
) -> ExerciseVerdict | None:
    """Judge a run whose outputs are collected, seal it, hand it in, and return its verdict.

    `digests`: the SHA-256 sums that are already known, by file path.
    """
    record.state = "broken" if record.drill else find_end_state(record.node_exits)
    record.diagnoses = []
    if not record.drill:  # the learner has to diagnose a drill
        with context.guard("name the cause of the failure"):
            record.diagnoses = diagnose.diagnose(context.paths, record)
    metrics = _metrics(context.watch, record, files)
    if metrics is not None and exercise.plots and not record.own_script:
        with stage(context.watch, "draw", "drawing", record.phases_s), context.guard("draw the pictures"):
            _draw(context, exercise, metrics, record, files)
    has_code = record.is_judged and parts.has_code(context, exercise, record)
    with stage(context.watch, "judge", "judging your part", record.phases_s) if has_code else nullcontext():
        verdict = judge(context, exercise, record)
    record.verdict = verdict.verdict if verdict else None
    record.as_predicted = is_as_predicted(record, verdict)
    # The seal comes first: files that cannot be handed in because the disk is full are still evidence.
    seals.save_sealed(files, record, _make_seal(files, record.mode, digests))
    deliver(context.paths, exercise, record)
    return verdict


def judge(context: Context, exercise: Exercise, record: RunRecord) -> ExerciseVerdict | None:
    """Evaluate the checks of the exercise, or of the learner's own script, on the collected files. Store and return the
    verdict.

    Return None if the run is not evidence.
    """
    if record.brings_checks:
        verdict = judge_own_checks(context, record)
    elif record.is_judged:
        verdict = judge_again(context, exercise, record)
    else:
        return None
    write_record(runs.files_of(context.paths, record).verdict, verdict)
    return verdict


def judge_again(context: Context, exercise: Exercise, record: RunRecord) -> ExerciseVerdict:
    """Judge the learner's parts again, in a separate process. Return the verdict on the run, with these results.

    Raises MissingError if a file of the run is damaged.
    """
    verdict = verdict_on(context, exercise, record)
    if not exercise.yours:
        return verdict
    results = parts.judge_parts(context, exercise, record, verdict.checks)
    files = runs.files_of(context.paths, record)
    parts.keep(context, exercise, [(result, files.yours_file(result.file)) for result in results])
    return replace(verdict, parts=results)


def seal(files: RunPaths, mode: str) -> None:
    """Write the SHA-256 sum of every file of the run, so that later changes can be detected."""
    write_record(files.hashes, _make_seal(files, mode, {}))


def _make_seal(files: RunPaths, mode: str, known_digests: Mapping[str, str]) -> dict[str, object]:
    paths = sorted(path for path in files.folder.rglob("*") if _is_plain(path) and path != files.hashes)
    names = {path.relative_to(files.folder).as_posix(): path for path in paths if not path.name.startswith(".")}
    digests = {name: known_digests.get(name) or seals.sha256(path) for name, path in names.items()}
    return {"version": 1, "mode": mode, "sha256": digests}


def seal_screen(files: RunPaths) -> None:
    """Add the captured screen to the checksums. It is drawn after the run is sealed."""
    if files.screen.is_file():
        seals.seal_again(files, [files.screen.name])


def deliver(paths: WorkspacePaths, exercise: Exercise, record: RunRecord) -> None:
    """Copy the exercise's deliverables into `deliverables/`, if this run is good and the deliverables there are not from a
    newer run.

    Files of an earlier run that this run does not have are removed. The learner's own files stay.
    """
    files, target = runs.files_of(paths, record), paths.deliverables(exercise.id)
    earlier = read_handed_in_verdict(paths, exercise.id)
    newer = earlier is not None and runs.is_newer(paths, earlier.run, record)
    if not record.is_evidence or record.verdict in {None, "failed", "error"} or newer:
        return
    sources = [source for deliverable in exercise.deliverables for source in sorted(files.folder.glob(deliverable.source))]
    sources_by_name = {source.relative_to(files.folder).as_posix(): source for source in sources if _is_plain(source)}
    with changing(paths, paths.delivery_list) as delivered:
        for old in set(delivered.get(exercise.id, ())) - set(sources_by_name):
            (target / old).unlink(missing_ok=True)
        for name, source in sources_by_name.items():
            copy_file(source, target / name)
        copy_file(files.verdict, paths.verdict(exercise.id))
        delivered[exercise.id] = sorted(sources_by_name)


def _collect(
    context: Context,
    fleet: Fleet,
    record: RunRecord,
    exercise: Exercise,
    files: RunPaths,
    until: float | None,
) -> dict[str, str]:
    """Collect the outputs; return their SHA-256 sums, by path relative to the run's folder."""
    from gpucourse.remote.collect import collect

    # A learner's script does not use GPUCOURSE_OUT, so everything that it wrote into its folder is its result.
    patterns = (*exercise.outputs, "**") if record.own_script else exercise.outputs
    limit = context.settings.output_limit
    collection = collect(fleet, record.id, patterns, files, exercise.max_output, context.watch, output_limit=limit, until=until)
    record.outputs, record.refused = collection.outputs[:MAX_LISTED], list(collection.refused)
    record.output_files, record.output_bytes = len(collection.outputs), sum(output.bytes for output in collection.outputs)
    for error in collection.unreachable:
        record.refused.append(RefusedFile(node=error.node, name="outputs", reason=f"not collected: {error.error.what}"))
    # If a run did not start on all nodes, a node that does not know the run has no outputs of it.
    missed = [node for node in collection.unreachable if record.started or not isinstance(node.error, UsageError)]
    record.collected = not missed
    environments = {node: {"mode": record.mode, **facts} for node, facts in collection.environments.items()}
    write_record(files.environment, {"version": 1, "mode": record.mode, "nodes": environments})
    for refusal in collection.refused[:_MAX_NOTES]:
        context.watch(Note(text=f"{refusal.node}: {refusal.name} was not collected: {refusal.reason}", level="warning"))
    if (omitted_count := len(collection.refused) - _MAX_NOTES) > 0:
        _warn(context.watch, f"{omitted_count} more files were not collected; {files.record} lists them")
    if missed:
        runs.save(context.paths, record)
        raise _make_collect_error(missed)
    return {output.path: output.sha256 for output in collection.outputs}


def _make_collect_error(missed: list[MissingOutputs]) -> UnreachableError:
    """Return one error that names every node whose outputs could not be collected, with the reasons."""
    kind = NodeUntrusted if any(isinstance(node.error, NodeUntrusted) for node in missed) else UnreachableError
    return kind("; ".join(node.error.with_subject(node.node) for node in missed), hint=missed[0].error.hint)


def _metrics(watch: Watcher, record: RunRecord, files: RunPaths) -> dict[str, Any] | None:
    """Return the metrics of the script. This program adds the mode and Slurm's data, which override the script's values."""
    metrics = slurm.add_metrics(_read_node_metrics(watch, record, files), record, files, watch)
    if metrics is not None:
        metrics["mode"] = record.mode
        write_record(files.metrics, metrics)
    return metrics


def _read_node_metrics(watch: Watcher, record: RunRecord, files: RunPaths) -> dict[str, Any] | None:
    """Return the metrics of the first node that wrote any."""
    for node in record.nodes:
        source = files.node_metrics(node)
        if not _is_plain(source):
            continue
        try:
            metrics = read_metrics(source)
        except MissingError as error:
            watch(Note(text=f"the script's measurements are not used: {error.what}", level="warning"))
            return None
        if not isinstance(metrics, dict):
            watch(Note(text=f"{source} does not contain an object", level="warning"))
            return None
        return metrics
    return None


def _is_plain(path: Path) -> bool:
    """Return whether the path itself is a file. The target of a link does not belong to the run."""
    return path.is_file() and not path.is_symlink()


def _draw(context: Context, exercise: Exercise, metrics: dict[str, Any], record: RunRecord, files: RunPaths) -> None:
    device = str(metrics.get("device") or "device unknown")
    origin = f"{device}, simulated nodes (mode: local)" if is_simulated(record.mode) else device
    subtitle = f"{exercise.id} · {origin} · {record.id}"
    with_gpu = is_gpu_evidence(metrics, record.mode)
    records = {} if with_gpu else list_recorded_plots(context, exercise)
    plots = [plot for plot in exercise.plots if with_gpu or plot.evidence != "gpu" or plot.file in records]
    for plot in plots:
        try:
            draw(plot, metrics, subtitle=subtitle, folder=files.folder, record=records.get(plot.file))
        except MissingError as error:
            if record.state != "cancelled":  # the learner knows why it has no numbers
                _warn(context.watch, f"no picture {plot.file}: {error.what}")


def list_recorded_plots(context: Context, exercise: Exercise) -> dict[str, RecordedPlot]:
    """Return recorded GPU measurements for the plots of the exercise, by plot file, if the course has them."""
    records = find_recorded_plots(
        context.folders.exercises,
        exercise,
        lambda text: _warn(context.watch, f"recorded GPU measurements are not shown: {text}"),
    )
    return {
        file: RecordedPlot(gpu=record.gpu, caption=record.caption, rows=plot.rows) for file, (record, plot) in records.items()
    }


def _warn(watch: Watcher, text: str) -> None:
    watch(Note(text=text, level="warning"))
