"""Inject faults for drills. The learner's script never changes.

A wrong world size changes the command. For the other faults (a killed or slowed rank, a blocked port), the node's agent
receives an order (`plan_faults`) and starts a process that causes the fault. No log mentions the order.
"""

from __future__ import annotations

from dataclasses import replace

from gpucourse.errors import UsageError
from gpucourse.launch.planning import RANK
from gpucourse.launch.torchrun import RESTARTS_OPTION
from gpucourse.model.drill import InjectedFault
from gpucourse.model.launchers import find_traits
from gpucourse.model.node import is_simulated
from gpucourse.model.plan import LaunchPlan, NodeCommand

COLLECTIVE_TIMEOUT_S = 10.0
SLOW_COLLECTIVE_TIMEOUT_S = 60.0
LIMIT_S = 240.0


def object_to_plan(plan: LaunchPlan) -> UsageError | None:
    """Return the error for a plan that cannot be a drill, or None if it can."""
    retry = f"gpucourse break {plan.exercise} --nodes 2"
    if not is_simulated(plan.mode):
        return UsageError(
            "drills run only on simulated nodes, where a fault costs nothing",
            hint="gpucourse deploy 3 --target local",
        )
    if not find_traits(plan.launcher).drills:
        return make_ranks_error(plan.exercise, plan.launcher)
    if plan.world_size < 2:
        return UsageError(f"{plan.exercise} would start only one rank, but a drill needs at least two", hint=retry)
    return None


def make_ranks_error(exercise: str, launcher: str, *, in_code: bool = False) -> UsageError:
    """Return the error for an exercise that cannot be a drill because its processes never meet.

    `in_code`: whether a fault can be put into the exercise's code instead.
    """
    ranks = "choose an exercise of module 3: gpucourse break 3.2"
    return UsageError(
        f"{exercise} starts no ranks that meet (its launcher is {launcher}), so there is nothing to break",
        hint=f"find an error in its code instead: gpucourse break {exercise} --how code\n{ranks}" if in_code else ranks,
    )


def prepare_drill(plan: LaunchPlan, fault: InjectedFault) -> LaunchPlan:
    """Return the plan with short timeouts, and without restarts if the fault makes a rank fail. If the fault can be put into a
    command, the plan contains it."""
    timeout_s = SLOW_COLLECTIVE_TIMEOUT_S if fault.how == "slow-rank" else COLLECTIVE_TIMEOUT_S
    timeout_s = min(timeout_s, plan.collective_timeout_s)
    keeps_restarts = fault.how == "slow-rank"  # this fault makes nothing fail
    commands = [
        replace(
            command,
            argv=command.argv if keeps_restarts else _remove_restarts(command.argv),
            env={**command.env, "GPUCOURSE_COLLECTIVE_TIMEOUT_S": f"{timeout_s:g}"},
        )
        for command in plan.commands
    ]
    if fault.how == "wrong-world-size":
        commands = [_set_rank_variable(command, f"WORLD_SIZE={plan.world_size + 1}") for command in commands]
    return replace(
        plan,
        commands=tuple(commands),
        collective_timeout_s=timeout_s,
        timeout_s=min(plan.timeout_s, LIMIT_S),
        max_restarts=plan.max_restarts if keeps_restarts else 0,
    )


def plan_faults(plan: LaunchPlan, fault: InjectedFault, *, after_s: float) -> dict[str, dict[str, object]]:
    """Return the order for each node's agent, by the node's name. The result is empty if the command already contains the
    fault."""
    if fault.how == "block-port":
        return {plan.nodes[0].name: {"how": fault.how, "port": plan.master_port}}
    if fault.how in {"kill-rank", "slow-rank"}:
        node = next(command.node.name for command in plan.commands if fault.rank in command.ranks)
        return {node: {"how": fault.how, "rank": fault.rank, "after_s": after_s}}
    return {}


def _remove_restarts(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command without torchrun's restarts, which would repair the failure that the learner should see.

    The words after the wrapper's placeholder belong to the script.
    """
    place = argv.index(RANK)
    return (*(word for word in argv[:place] if not word.startswith(RESTARTS_OPTION)), *argv[place:])


def _set_rank_variable(command: NodeCommand, setting: str) -> NodeCommand:
    """Return the command with this variable, in a form that reaches its ranks even if their launcher sets the variable too."""
    place = command.argv.index(RANK) + 1
    return replace(command, argv=(*command.argv[:place], "/usr/bin/env", setting, *command.argv[place:]))
