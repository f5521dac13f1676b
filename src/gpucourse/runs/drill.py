"""Break an exercise with an injected fault, and judge the learner's diagnosis."""

from __future__ import annotations

import secrets
from dataclasses import replace

from gpucourse.context import Context
from gpucourse.errors import ExerciseFailed, MissingError, UsageError
from gpucourse.launch import drill as launch_drill
from gpucourse.model.diagnosis import Diagnosis
from gpucourse.model.drill import BY_RANK, MEANING, Attempt, How, InjectedFault
from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import CheckResult, ExerciseVerdict
from gpucourse.runs.diagnose import diagnose
from gpucourse.runs.resolve import RunRequest, resolve
from gpucourse.runs.run import RunResult, run
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.files import read_record, write_record
from gpucourse.workspace.paths import WorkspacePaths

_HINTS: dict[How, tuple[str, ...]] = {
    "kill-rank": (
        "Which rank ended first, and with which code? See gpucourse runs, then the logs of that rank.",
        "A code above 128 is 128 plus the number of a signal. Does the log of that rank say why it ended?",
        "137 is 128 + 9: SIGKILL, from outside. The rank that ended with it has no traceback; the others have one, as victims.",
    ),
    "block-port": (
        "Did any rank begin at all? If not, the launchers' logs (launcher in the prefix) show what happened.",
        "Look at the log of the first node's launcher: which process should listen there, and what did the system answer?",
        "EADDRINUSE: the address is in use. Rank 0 opens the meeting point, and its port was taken.",
    ),
    "wrong-world-size": (
        "All ranks began, and all of them are stuck in the same call. Which call is it?",
        "The ranks wait in init_process_group for a rank that does not come. The last number of their key is its rank.",
        "They wait for a rank that no process has: their world size is larger than the number of ranks started.",
    ),
    "slow-rank": (
        "Nothing failed, so compare times, rank by rank: gpucourse logs {run} --times shows when each line arrived.",
        "In DDP all ranks wait for each other in every step, so their step times are equal. What does each rank do before "
        "they first meet, or without communication?",
        "The slow rank joins last: whose line says that it joined 0 s after it was ready? (3.2 also "
        "measures each rank's own step: its metrics, own_steps.)",
    ),
}


def break_exercise(context: Context, run_request: RunRequest, requested_kind: How | None) -> RunResult:
    """Run the exercise with an injected fault, chosen at random if `requested_kind` is None, and return the result.

    No log and no file of the run shows the kind of the fault. Raises UsageError if nothing can be broken, ExerciseFailed if the
    fault came too late, and the errors of `run`.
    """
    _, exercise = context.catalog.exercise(run_request.exercise)
    drills = exercise.launch.traits.drills
    if not drills:
        raise launch_drill.make_ranks_error(exercise.id, exercise.launch.kind, in_code=bool(exercise.faults))
    run_request = choose_simulated_lab(context, run_request)
    kind: How = secrets.choice(list(drills)) if requested_kind is None else requested_kind
    faults: list[InjectedFault] = []

    def inject_faults(plan: LaunchPlan) -> tuple[LaunchPlan, dict[str, dict[str, object]]]:
        rank = secrets.randbelow(plan.world_size) if kind in BY_RANK else None
        faults.append(InjectedFault(run=plan.run_id, exercise=plan.exercise, how=kind, rank=rank))
        write_record(context.paths.drill(plan.run_id), faults[0])
        after_s = 0.1 + secrets.randbelow(400) / 1000
        return launch_drill.prepare_drill(plan, faults[0]), launch_drill.plan_faults(plan, faults[0], after_s=after_s)

    resolved = resolve(context, run_request)
    ran = run(context, resolved, inject_faults=inject_faults, object_to=launch_drill.object_to_plan)
    record = ran.record
    if not _took_effect(record, faults[0]):
        context.paths.drill(record.id).unlink(missing_ok=True)
        record.drill, record.state, record.error = False, "cancelled", "a drill whose fault had no effect"
        runs.save(context.paths, record)
        raise ExerciseFailed(
            f"the fault had no effect on run {record.id}: the run ended before the fault, or for another reason",
            hint=f"gpucourse logs {record.id}; then again, with more work for the ranks: gpucourse break {record.exercise}",
        )
    return ran


def choose_simulated_lab(context: Context, run_request: RunRequest) -> RunRequest:
    """Return the request with the simulated lab as its target, if there is one. Otherwise, return the request unchanged; the
    plan of the run is refused later.
    """
    module, _ = context.catalog.exercise(run_request.exercise)
    labs = (lab for lab in deployments.list_of_module(context.paths, module.id) if lab.is_simulated and lab.up)
    return next((replace(run_request, target=lab.target) for lab in labs), run_request)


def _took_effect(record: RunRecord, fault: InjectedFault) -> bool:
    """Return whether the run ended in the way that the fault causes."""
    if fault.how == "slow-rank":  # on a busy computer, the run may reach its time limit
        return all(exit_.code == 0 or exit_.reason == "timed_out" for exit_ in record.node_exits)
    if fault.how == "kill-rank":
        return any(exit_.rank == fault.rank and exit_.code == 137 for exit_ in record.rank_exits)
    return any(exit_.code or exit_.reason != "exited" for exit_ in record.node_exits)


def judge_diagnosis(context: Context, exercise_id: str, answer: str, rank: int | None) -> tuple[RunRecord, ExerciseVerdict]:
    """Judge the learner's diagnosis of the newest drill of an exercise. Return the drill's run and the verdict. If it is right,
    store the coach's diagnosis in the record. A wrong diagnosis that follows a right one is not stored.

    Raises MissingError if there is no drill, and UsageError for a rank that the run does not have.
    """
    _, exercise = context.catalog.exercise(exercise_id)
    newest = _find_newest_drill(context.paths, exercise.id)
    if newest is None:
        raise MissingError(f"there is no drill of {exercise.id} to diagnose", hint=f"gpucourse break {exercise.id}")
    record, fault = newest
    if rank is not None and not 0 <= rank < record.world_size:
        raise UsageError(
            f"--rank {rank}: run {record.id} has ranks 0 to {record.world_size - 1}",
            hint=f"gpucourse logs {record.id} shows them",
        )
    verdict = _compare_with_fault(record, fault, answer, rank)
    is_right = verdict.verdict == "passed"
    if fault.is_solved and not is_right:
        return record, verdict
    fault.attempts.append(Attempt(how=answer, rank=rank, right=is_right, at=now_utc()))
    write_record(context.paths.drill(record.id), fault)
    write_record(runs.files_of(context.paths, record).verdict, verdict)
    record.verdict = verdict.verdict
    if is_right:
        diagnoses = [_slow(fault)] if fault.how == "slow-rank" else diagnose(context.paths, record)
        # The fault is found, so no next step is left.
        record.diagnoses = [replace(diagnosis, next="") for diagnosis in diagnoses]
    runs.save(context.paths, record)
    return record, verdict


def open_drill(paths: WorkspacePaths, exercise_id: str) -> RunRecord | None:
    """Return the newest drill of an exercise if its fault has not been found yet; otherwise, return None."""
    newest = _find_newest_drill(paths, exercise_id)
    return newest[0] if newest is not None and not newest[1].is_solved else None


def _find_newest_drill(paths: WorkspacePaths, exercise_id: str) -> tuple[RunRecord, InjectedFault] | None:
    """Return the newest drill of an exercise and its fault. Return None if there is no drill or the fault is in the code."""
    drills = [record for record in runs.every(paths, exercise_id) if record.drill]
    fault = read_record(paths.drill(drills[-1].id), InjectedFault) if drills else None
    return (drills[-1], fault) if fault is not None else None


def _compare_with_fault(record: RunRecord, fault: InjectedFault, answer: str, rank: int | None) -> ExerciseVerdict:
    hints = _HINTS[fault.how]
    hint = hints[min(len(fault.attempts), len(hints) - 1)].format(run=record.id)
    kind_right = answer == fault.how
    checks = [
        CheckResult(
            id="diagnosis",
            title="What was broken",
            verdict="passed" if kind_right else "failed",
            evidence="logic",
            observed=answer,
            expected=MEANING[fault.how] if kind_right else "a fault other than this",
            hint="" if kind_right else hint,
        )
    ]
    if kind_right and fault.rank is not None:
        rank_right = rank == fault.rank
        checks.append(
            CheckResult(
                id="rank",
                title="Which rank it was",
                verdict="passed" if rank_right else "failed",
                evidence="logic",
                observed="no rank named" if rank is None else f"rank {rank}",
                expected=f"rank {fault.rank}" if rank_right else "its number" if rank is None else "a rank other than this",
                hint="" if rank_right else f"Name it with --rank. {hint}" if rank is None else hint,
            )
        )
    has_passed = all(check.verdict == "passed" for check in checks)
    return ExerciseVerdict(
        exercise=record.exercise,
        run=record.id,
        mode=record.mode,
        verdict="passed" if has_passed else "failed",
        checks=tuple(checks),
    )


def _slow(fault: InjectedFault) -> Diagnosis:
    return Diagnosis(
        symptom="slow-rank",
        title=f"Rank {fault.rank} was slow",
        why="Nothing fails when a rank is slow: in every AllReduce the others wait for it, so the whole job runs at its "
        "pace, and every rank measures the same step time. In real clusters, the cause is often a hot GPU, another job on "
        "the node or a slow disk.",
        next="",
        ranks=[] if fault.rank is None else [fault.rank],
    )
