"""Turns records and manifests into the small objects that `--json` prints: stored formats may change, these keys stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpucourse.units import parse_moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpucourse.cli.documents import course, labs, runs
    from gpucourse.context import Context
    from gpucourse.errors import GpucourseError
    from gpucourse.labs.results import DeployResult
    from gpucourse.labs.status import StackStatus
    from gpucourse.learning.compare import Comparison
    from gpucourse.learning.list_ import Syllabus
    from gpucourse.model.deployment import Deployment, Receipt
    from gpucourse.model.launching import Parameter
    from gpucourse.model.manifest import Exercise, Module
    from gpucourse.model.plan import LaunchPlan
    from gpucourse.model.record import RunRecord


def describe_run(record: RunRecord) -> runs.RunDocument:
    """Return a run without its files, its exits and its phases."""
    return {
        "id": record.id,
        "exercise": record.exercise,
        "script": record.own_script,
        "module": record.module,
        "stack": record.stack,
        "mode": record.mode,
        "launcher": record.launcher,
        "state": record.state,
        "verdict": record.shown_verdict,
        "created": record.created,
        "started": record.started,
        "ended": record.ended,
        "seconds": _seconds_between(record.started, record.ended),
        "nodes": record.nodes,
        "world_size": record.world_size,
        "restarts": record.restarts,
        "parameters": record.parameters,
        "environment": record.environment,
        "handed_on": record.handed_on,
        "torchrun": record.torchrun,
        "group_sizes": record.group_sizes,
        "warnings": [record.split_world] if record.split_world else [],
        "prediction": record.prediction,
        "failed_rank": record.culprit,
        "diagnoses": [
            {
                "symptom": diagnosis.symptom,
                "title": diagnosis.title,
                "next": diagnosis.next,
                "ranks": diagnosis.ranks,
                "nodes": diagnosis.nodes,
            }
            for diagnosis in record.diagnoses
        ],
        "drill": record.drill,
        "profiled": record.profiled,
        "collected": record.collected,
        "error": record.error,
    }


def _seconds_between(start: str | None, end: str | None) -> float | None:
    return (parse_moment(end) - parse_moment(start)).total_seconds() if start and end else None


def describe_plan(plan: LaunchPlan) -> runs.PlanDocument:
    """Return what a run would start, node by node."""
    return {
        "exercise": plan.exercise,
        "launcher": plan.launcher,
        "mode": plan.mode,
        "script": plan.own_script or plan.script,
        "parameters": plan.parameters,
        "commands": [
            {"node": command.node.name, "argv": list(command.argv), "env": command.env, "ranks": list(command.ranks)}
            for command in plan.commands
        ],
        "uploads": [{"name": upload.name, "source": str(upload.source)} for upload in plan.uploads],
        "handed_on": list(plan.handed_on),
        "timeout_s": plan.timeout_s,
        "batch": plan.batch,
    }


def describe_comparison(comparison: Comparison) -> runs.ComparisonDocument:
    """Return runs side by side."""
    return {
        "exercise": comparison.exercise,
        "title": comparison.title,
        "mode": comparison.mode,
        "labels": comparison.labels,
        "runs": [describe_run(record) for record in comparison.records],
        "grids": list(comparison.grids),
        "files": [str(path) for path in comparison.files],
        "conclusion": comparison.conclusion,
        "repeat": comparison.repeat,
    }


def describe_lab(deployment: Deployment) -> labs.LabDocument:
    """Return a lab without its keys and its variables."""
    nodes = deployment.inventory.nodes if deployment.inventory else ()
    return {
        "stack": deployment.stack,
        "uid": deployment.uid,
        "module": deployment.module,
        "target": deployment.target,
        "template": deployment.template,
        "phase": deployment.phase,
        "mode": deployment.mode,
        "gpu": deployment.gpu,
        "link": deployment.link,
        "created": deployment.created,
        "expires": deployment.expires,
        "nodes_wanted": deployment.nodes_wanted,
        "nodes": [
            {
                "name": node.name,
                "role": node.role,
                "address": node.address,
                "port": node.port,
                "private_address": node.private_address,
                "user": node.user,
                "gpus": node.gpus,
                "instance_type": node.instance_type,
                "python": node.python,
                "mode": node.mode,
                "host_key": node.host_key,
            }
            for node in nodes
        ],
        "cloud": getattr(deployment, "cloud", None),
        "error": deployment.error,
    }


def describe_built(result: DeployResult) -> labs.BuiltLab:
    """Return what `deploy` did for one lab."""
    return {
        "deployment": describe_lab(result.deployment),
        "changes": result.changes,
        "dry_run": result.dry_run,
        "seconds": result.seconds,
        "healed": result.healed,
    }


def describe_stack(status: StackStatus) -> labs.StackDocument:
    """Return the current state of one lab."""
    return {
        "deployment": describe_lab(status.deployment),
        "healthy": status.healthy,
        "nodes": status.nodes,
        "active_runs": [record.id for record in status.active_runs],
        "cloud": _describe_outlook(status),
    }


def _describe_outlook(status: StackStatus) -> labs.CloudStatus | None:
    cloud = status.cloud
    if cloud is None:
        return None
    return {
        "instances": cloud.instances,
        "expires": cloud.expires,
        "seconds_left": cloud.seconds_left,
        "cost_usd": cloud.cost_usd,
        "usd_per_hour": cloud.usd_per_hour,
        "unknown": cloud.unknown,
        "stopped": cloud.stopped,
        "ended": cloud.ended,
        "idle": [
            {"node": idle.node, "seen_at": idle.seen_at, "busy": list(idle.busy), "ends_at": idle.ends_at}
            for idle in cloud.idle
        ],
        "backstop": cloud.backstop,
    }


def describe_receipt(receipt: Receipt) -> labs.ReceiptDocument:
    """Return what one `destroy` did."""
    return {
        "stack": receipt.stack,
        "uid": receipt.uid,
        "module": receipt.module,
        "mode": receipt.mode,
        "created": receipt.created,
        "destroyed": receipt.destroyed,
        "existed": receipt.existed,
        "removed": receipt.removed,
        "swept": receipt.swept,
        "leftovers": receipt.leftovers,
        "forgotten": receipt.forgotten,
        "outputs_home": receipt.outputs_home,
        "outputs_discarded": receipt.outputs_discarded,
        "regions": receipt.regions,
        "ended": receipt.ended,
        "cost_usd": receipt.cost_usd,
    }


def describe_errors(errors: Sequence[GpucourseError]) -> course.ErrorDocument:
    """Return several errors as one: the gravest, with the messages of all."""
    worst = max(errors, key=lambda error: error.exit_code)
    return {
        "code": worst.code,
        "what": "\n".join(error.what for error in errors),
        "hint": worst.hint,
        "log": str(worst.log) if worst.log else None,
        "exit_code": int(worst.exit_code),
    }


def describe_course(syllabus: Syllabus) -> course.Listing:
    """Return the syllabus without the manifests."""
    points = syllabus.points
    parts = {part.module: part for part in points.parts} if points else {}
    verdicts = {number: verdict.verdict for number, verdict in syllabus.progress.items()}
    signs = points.signs if points else {}
    return {
        "modules": [
            {
                "id": module.id,
                "title": module.title,
                "hours": module.hours,
                "points": parts[module.id].points if module.id in parts else None,
                "earned": parts[module.id].earned if module.id in parts else None,
                "exercises": [
                    {
                        "id": exercise.id,
                        "title": exercise.title,
                        "minutes": exercise.minutes,
                        "verdict": verdicts.get(exercise.id),
                        "signs": signs.get(exercise.id),
                    }
                    for exercise in module.exercises
                ],
            }
            for module in syllabus.modules
        ],
        "points": points.points if points else None,
        "earned": points.earned if points else None,
        "broken": [error.what for error in syllabus.broken],
    }


def describe_module(context: Context, module: Module) -> course.ShownModule:
    """Return a module and the paths of its lesson."""
    folder = context.folders.modules / context.catalog.folder_name(module)
    return {
        "id": module.id,
        "title": module.title,
        "summary": module.summary,
        "hours": module.hours,
        "lesson": [str(folder / name) for name in (module.lesson, *module.further_lessons)],
        "exercises": [
            {"id": exercise.id, "title": exercise.title, "goal": exercise.goal, "minutes": exercise.minutes}
            for exercise in module.exercises
        ],
    }


def describe_exercise(exercise: Exercise) -> course.ExerciseDocument:
    """Return an exercise of a manifest, without its checks, questions and plots."""
    return {
        "id": exercise.id,
        "title": exercise.title,
        "goal": exercise.goal,
        "minutes": exercise.minutes,
        "script": exercise.script,
        "launcher": exercise.launch.kind,
        "tasks": list(exercise.tasks),
        "parameters": [describe_parameter(parameter) for parameter in exercise.parameters],
    }


def describe_parameter(parameter: Parameter) -> course.ParameterDocument:
    """Return a parameter: its type, its defaults and its limits."""
    return {
        "name": parameter.name,
        "type": parameter.type,
        "default": parameter.default,
        "local": parameter.default_for(local=True),
        "min": parameter.min,
        "max": parameter.max,
        "choices": list(parameter.choices),
        "unit": parameter.unit,
        "help": parameter.help,
    }
