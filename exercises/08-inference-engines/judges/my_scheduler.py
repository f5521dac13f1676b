"""Judge my_scheduler.py of 8.3: the rule allows one plan for each step, so plans are compared exactly, in five traces.

A wrong part gets the name of a mistake if the solution with that change has the same plans, or differs from the rule first in
the same steps, with the same plans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine_sim import simulate
from paged_engine import PagePool, PlanError, Request, Step
from request_traces import make_trace
from step_clock import Clock

from gpucourse.judge import Part, Verdict, Way, plant_ways

WAYS = {
    "waits-for-the-batch": Way(
        "in step {step} {loses} waits although there is room: a request may join in every step, not only when the others have "
        "ended",
        ("and not preempted:", "and not preempted and place == 0:"),
    ),
    "prompts-first": Way(
        "in step {step} {loses} gets {less} of {right} tokens, because waiting prompts took the budget: running requests come "
        "first",
        (
            "    while place < len(running) and budget > 0:\n        request = running[place]\n",
            "    while waiting and budget > 0 and len(running) < max_requests:\n        request = waiting[0]\n"
            "        rest = request.prompt_tokens + request.generated_tokens - request.computed_tokens\n"
            "        if not pages.grow(request, request.computed_tokens + min(rest, budget)):\n            break\n"
            "        running.append(waiting.pop(0))\n        plan[request.name] = min(rest, budget)\n"
            "        budget -= plan[request.name]\n"
            "    while place < len(running) and budget > 0:\n        request = running[place]\n"
            "        if request.name in plan:\n            place += 1\n            continue\n",
        ),
    ),
    "budget-for-prompts-only": Way(
        "step {step} has {total} tokens, but {budget} are allowed: a token of an answer counts like a token of a prompt",
        (
            "        plan[request.name] = tokens\n        budget -= tokens\n        place += 1",
            "        plan[request.name] = tokens\n        budget -= tokens if tokens > 1 else 0\n        place += 1",
        ),
    ),
    "budget-per-request": Way(
        "step {step} has {total} tokens, but {budget} are allowed: the budget is for the step, not for each request",
        (
            "        running.append(waiting.pop(0))\n        plan[request.name] = tokens\n        budget -= tokens",
            "        running.append(waiting.pop(0))\n        plan[request.name] = tokens",
        ),
    ),
    "not-in-pieces": Way(
        "in step {step} {loses} could compute {right} tokens and gets {less}: a prompt that does not fit into the rest of the "
        "budget is cut, and the next step continues it",
        (
            "        if not pages.grow(request, request.computed_tokens + tokens):\n            break\n",
            "        tokens = request.prompt_tokens + request.generated_tokens - request.computed_tokens\n"
            "        if tokens > budget:\n            break\n"
            "        if not pages.grow(request, request.computed_tokens + tokens):\n            break\n",
        ),
    ),
    "whole-prompts": Way(
        "in step {step} {gains} gets {more} tokens, although {budget} are allowed in the whole step: a longer prompt "
        "is computed in pieces",
        (
            "        if not pages.grow(request, request.computed_tokens + tokens):\n            break\n",
            "        tokens = request.prompt_tokens + request.generated_tokens - request.computed_tokens\n"
            "        if not pages.grow(request, request.computed_tokens + tokens):\n            break\n",
        ),
    ),
    "one-token-too-early": Way(
        "in step {step} {loses} gets {less} token instead of {right}: a running request may not have computed its whole "
        "prompt yet",
        (
            "        tokens = min(request.prompt_tokens + request.generated_tokens - request.computed_tokens, budget)\n"
            "        while",
            "        tokens = 1\n        while",
        ),
    ),
    "max-ignored": Way(
        "in step {step} more than {max_requests} requests run: max_requests is the limit",
        (" and len(running) < max_requests", ""),
    ),
    "overtakes": Way(
        "in step {step} {gains} overtakes a request that waits for pages: no request may overtake the first one, however "
        "large that is",
        (
            "        if not pages.grow(request, request.computed_tokens + tokens):\n            break\n"
            "        running.append(waiting.pop(0))\n",
            "        rests = [r.prompt_tokens + r.generated_tokens - r.computed_tokens for r in waiting]\n"
            "        fits = [n for n, r in enumerate(waiting)\n"
            "                if pages.grow(r, r.computed_tokens + min(rests[n], budget))][:1]\n"
            "        if not fits:\n            break\n        request, tokens = waiting[fits[0]], min(rests[fits[0]], "
            "budget)\n"
            "        running.append(waiting.pop(fits[0]))\n",
        ),
    ),
    "newest-first": Way(
        "in step {step} {gains} joins out of turn: the request that has waited longest is waiting[0]",
        (
            "        request = waiting[0]\n",
            "        waiting.insert(0, waiting.pop())\n        request = waiting[0]\n",
        ),
    ),
    "oldest-preempted": Way(
        "in step {step} the request that has run longest was preempted: it would lose most. Take the last running request",
        (
            "            victim = running.pop()\n",
            "            victim = running.pop(0)\n            place = max(0, place - 1)\n"
            "            budget += plan.pop(victim.name, 0)\n",
        ),
    ),
    "to-the-end": Way(
        "in step {step} {gains} comes before a request that was preempted: the preempted one arrived first, so it waits at "
        "the front",
        ("waiting.insert(0, victim)", "waiting.append(victim)"),
    ),
    "computed-kept": Way(
        "in step {step} {loses}, which was preempted, gets {less} tokens instead of {right}: its pages were released, "
        "so none of its tokens count as computed",
        ("            victim.computed_tokens = 0\n", ""),
    ),
    "pages-kept": Way(
        "in step {step} preempting {victims} has freed no page: release the pages of a request that you preempt",
        ("            pages.release(victim)\n", ""),
    ),
    "answer-lost": Way(
        "in step {step} {loses}, which was preempted, has lost its answer: the generated tokens stay, and are computed again "
        "like a prompt",
        (
            "            victim.computed_tokens = 0\n",
            "            victim.computed_tokens = 0\n            victim.generated_tokens = 0\n"
            "            victim.token_times_ns.clear()\n",
        ),
    ),
    "admits-after-preempting": Way(
        "in step {step} {gains} joins although pages were just missing: after a preemption, no request joins in this step",
        (" and not preempted", ""),
    ),
    "reserves-the-answer": Way(
        "in step {step} {loses} waits for pages of its whole answer: no engine knows how long that will be. Ask for pages for"
        " the tokens of this step",
        (
            "        if not pages.grow(request, request.computed_tokens + tokens):\n            break\n",
            "        if not pages.grow(request, request.prompt_tokens + request.answer_tokens):\n            break\n",
        ),
    ),
    "no-preemption": Way(
        "in step {step} pages are missing, and your plan stops: as long as all requests keep their pages, none can continue. "
        "Preempt the last one",
        (
            "            victim = running.pop()\n            pages.release(victim)\n            victim.computed_tokens = 0\n"
            "            waiting.insert(0, victim)\n            preempted = True\n            if victim is request:\n"
            "                return plan\n",
            "            return plan\n",
        ),
    ),
    "pages-for-new-only": Way(
        "in step {step} a running request has pages for its new tokens only ({error}): it needs them for the computed tokens "
        "as well",
        ("while not pages.grow(request, request.computed_tokens + tokens)", "while not pages.grow(request, tokens)"),
    ),
}


@dataclass(frozen=True)
class Trial:
    """Requests, and an engine for them."""

    requests: tuple[Request, ...]
    pages: int
    budget: int
    max_requests: int


def _make(gap_ns: int, lengths: tuple[tuple[int, int], ...], together: int = 0) -> tuple[Request, ...]:
    return tuple(
        Request(f"r{number}", 0 if number < together else number * gap_ns, prompt, answer)
        for number, (prompt, answer) in enumerate(lengths)
    )


GROWING = _make(30_000_000, ((40, 60), (25, 70), (33, 50), (60, 40), (10, 30), (70, 25), (12, 80)))
MIXED = _make(40_000_000, ((30, 12), (700, 6), (20, 20), (90, 9), (15, 4), (260, 7), (16, 3)), together=3)
FORTY = tuple(make_trace("chat", 40, 0.9))
TRIALS = {
    "seven requests, pages for all": Trial(MIXED, 200, 64, 4),
    "seven requests, few pages": Trial(MIXED, 48, 64, 6),
    "long answers, few pages": Trial(GROWING, 14, 64, 5),
    "forty requests, pages for all": Trial(FORTY, 2641, 512, 32),
    "forty requests, few pages": Trial(FORTY, 560, 512, 32),
}
MAX_STEPS = 20_000
_CLOCK = Clock()
Schedule = Callable[..., dict[str, int]]


@dataclass
class Log:
    """The plans of a trial, and why it ended early, if it did."""

    steps: list[Step]
    error: str = ""
    raised: BaseException | None = None

    @property
    def plans(self) -> list[dict[str, int]]:
        """Return the plan of each step."""
        return [step.plan for step in self.steps]


def _run(schedule: Schedule, trial: Trial) -> Log:
    log = Log([])
    try:
        simulate(
            trial.requests, schedule, _CLOCK, pages=trial.pages, budget=trial.budget, max_requests=trial.max_requests,
            max_steps=MAX_STEPS, observe=log.steps.append,
        )  # fmt: skip
    except PlanError as error:
        log.error = str(error)
    except BaseException as error:  # noqa: BLE001  # the part may raise anything
        log.error, log.raised = type(error).__name__, error
    return log


def judge(part: Part) -> None:
    """Judge every plan of five traces."""
    schedule = part.function("schedule")
    logs = {}
    for name, trial in TRIALS.items():
        logs[name] = _run(schedule, trial)
        if isinstance(logs[name].raised, NotImplementedError | SystemExit | MemoryError):
            raise part.make_verdict(logs[name].raised, name)  # type: ignore[arg-type]
    right = {name: _run(_schedule, trial) for name, trial in TRIALS.items()}
    differences = {name: place for name in TRIALS if (place := _find_difference(logs[name], right[name])) is not None}
    if differences:
        raise _name_cause(part, logs, right, differences)
    steps = sum(len(log.steps) for log in logs.values())
    part.note(f"{steps} plans in {len(TRIALS)} traces, every one by the rule")


def _find_difference(log: Log, right: Log) -> int | None:
    """Return the number of the first step that differs."""
    for number, (plan, right_plan) in enumerate(zip(log.plans, right.plans)):  # noqa: B905
        if plan != right_plan:
            return number
    return min(len(log.plans), len(right.plans)) if log.error or len(log.plans) != len(right.plans) else None


def _name_cause(part: Part, logs: dict[str, Log], right: dict[str, Log], differences: dict[str, int]) -> Verdict:
    name, number = next(iter(differences.items()))
    values = _describe(logs[name], right[name], number, TRIALS[name])
    case = f"{name}, step {number + 1}"
    alike = {way: other for way, module in plant_ways(WAYS, __file__) if (other := _run_alike(module.schedule, logs, right))}
    same = [way for way, other in alike.items() if all(
        (other[trial].plans, other[trial].error) == (logs[trial].plans, logs[trial].error) for trial in TRIALS)]  # fmt: skip
    if same or len(alike) == 1:
        return part.wrong((same or [*alike])[0], case, **values)
    log = logs[name]
    if log.raised is not None and number >= len(log.plans):
        return part.make_verdict(log.raised, case)
    text = "{state}. {yours}. By the rule, the plan is {right_plan}".format(**values)
    return Verdict("failed", "other", text, case)


def _run_alike(schedule: Schedule, logs: dict[str, Log], right: dict[str, Log]) -> dict[str, Log]:
    """Return the plans of another scheduler in all trials, or none if the first difference in a trial is not the same."""
    others = {}
    for name, trial in TRIALS.items():
        others[name] = _run(schedule, trial)
        if _sign(others[name], right[name]) != _sign(logs[name], right[name]):
            return {}
    return others


def _sign(log: Log, right: Log) -> tuple[int, object] | None:
    """Return the step of the first difference in a trial, with its plan or its error, or None without a difference."""
    number = _find_difference(log, right)
    return None if number is None else (number, log.plans[number] if number < len(log.plans) else log.error)


def _describe(log: Log, right: Log, number: int, trial: Trial) -> dict[str, Any]:
    """Return values for the texts: the step, the first requests that gain and lose tokens, and both plans."""
    plan = log.plans[number] if number < len(log.plans) else {}
    right_step = right.steps[number] if number < len(right.steps) else None
    right_plan = right_step.plan if right_step else {}
    gains = next((name for name in sorted(plan) if plan[name] > right_plan.get(name, 0)), "a request")
    loses = next((name for name in sorted(right_plan) if plan.get(name, 0) < right_plan[name]), "a request")
    before = log.steps[number - 1] if 0 < number <= len(log.steps) else None
    last_running = set(before.running if before else ())
    victims = sorted(name for name in last_running if right_step and name in right_step.waiting)
    state = f"budget {trial.budget}, max_requests {trial.max_requests}"
    if before:
        state += f"; after the step before, {len(before.running)} ran, {len(before.waiting)} waited, "
        state += f"and {before.free_pages} pages were free"
    return {
        "step": number + 1, "gains": gains, "more": plan.get(gains, 0), "loses": loses, "less": plan.get(loses, 0),
        "right": right_plan.get(loses, 0), "total": sum(plan.values()), "budget": trial.budget,
        "max_requests": trial.max_requests, "victims": ", ".join(victims) or "a request",
        "error": log.error or "another plan", "right_plan": right_plan, "state": state,
        "yours": f"Your plan is {plan}" if number < len(log.plans) else f"Your plan cannot be computed: {log.error}",
    }  # fmt: skip


def _schedule(
    waiting: list[Request], running: list[Request], pages: PagePool, budget: int, max_requests: int
) -> dict[str, int]:
    """Return the plan by the rule."""
    plan: dict[str, int] = {}
    victims: list[Request] = []
    for request in list(running):
        rest = budget - sum(plan.values())
        if rest <= 0 or request in victims:
            break
        tokens = min(_count_rest(request), rest)
        while request in running and not pages.grow(request, request.computed_tokens + tokens):
            victims.append(running.pop())
            pages.release(victims[-1])
            victims[-1].computed_tokens = 0
            waiting.insert(0, victims[-1])
        if request in running:
            plan[request.name] = tokens
    while not victims and waiting and len(running) < max_requests and sum(plan.values()) < budget:
        request = waiting[0]
        tokens = min(_count_rest(request), budget - sum(plan.values()))
        if not pages.grow(request, request.computed_tokens + tokens):
            break
        running.append(waiting.pop(0))
        plan[request.name] = tokens
    return plan


def _count_rest(request: Request) -> int:
    return request.prompt_tokens + request.generated_tokens - request.computed_tokens
