"""Judge my_service.yaml of 8.8 by the clock of a data sheet: rules, limits, the price among all plans, and reasons.

A plan may use the router that lies beside it, or the course's solution if there is none.
"""

from __future__ import annotations

from pathlib import Path

from decision_file import MIN_DIFFERENT, MIN_WORDS
from service_file import ServiceFile, read_service
from service_plans import MAX_TIMES, MINE, find_cheapest, find_forbidden, find_problems, make_load, price

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "no-machine": Way("{reason}", ("slices: 1", "slices: 2")),
    "no-fp8": Way("{reason}: take bf16, or a GPU that has them", ("format: bf16", "format: fp8")),
    "weights": Way("{reason}: an engine needs room for all weights and a cache", ("puzzle: 1", "puzzle: 3")),
    "one-side": Way(
        "{reason}: a request needs both pools, one after the other", ("pools: one", "pools: {prefill: 3, decode: 0}")
    ),
    "slow-step": Way(
        "{reason}. More engines do not help: a step with one token reads all weights as well",
        ("puzzle: 1\ngpu: a10g", "puzzle: 2\ngpu: l4"),
    ),
    "quota": Way("{reason}. Which of your parts makes the engines compute less?", ("engines: 3", "engines: 4")),
    "untested": Way(
        "{reason}",
        ("gpu: a10g\nslices: 1\nengines: 3\npools: one\nbudget: 256\nrouter: mine\nformat: bf16",
         "gpu: l4\nslices: 1\nengines: 3\npools: one\nbudget: 256\nrouter: mine\nformat: fp8"),
    ),
    "first-too-late": Way(
        "{good:.1f} % of the requests meet both limits, but {needed} % must: most of the others get their first token too "
        "late, as prompts wait for engines or for pages",
        ("budget: 256\nrouter: mine", "budget: 64\nrouter: fewest requests"),
    ),
    "tokens-too-slow": Way(
        "{good:.1f} % of the requests meet both limits, but {needed} % must: most of the others get their tokens too slowly. "
        "Steps are too full: with the tokens of prompts, or with answers",
        ("router: mine", "router: fewest tokens"),
    ),
    "dear": Way(
        "it meets the limits, but costs {usd:.2f} dollars for a million good tokens, and another plan costs {least:.2f}: "
        "yours may cost at most a quarter more than the cheapest. {good:.1f} % of the requests meet the limits, and {needed} "
        "% would be enough",
        ("puzzle: 1\ngpu: a10g", "puzzle: 29\ngpu: l40s"),
    ),
    "no-reasons": Way(
        "the plan is right, but its reasons have {count} of {least} words: which limit decides, what did you measure, what "
        "would change the plan?",
        ("reasons: >\n"
         "  The quota decides: a step takes 33 ms on an A10G, and an L4 needs 65 of the 80 ms for a single token.\n"
         "  By fewest tokens, half of the requests miss a limit; my router sends a question to an engine that has\n"
         "  kept its document, so the engines compute less. Without hot documents, three GPUs would not be enough.\n",
         "reasons: it is cheap\n"),
    ),
    "same-words": Way(
        "the reasons have {count} words, but only {different} different ones: write what is true for this plan",
        ("reasons: >\n"
         "  The quota decides: a step takes 33 ms on an A10G, and an L4 needs 65 of the 80 ms for a single token.\n"
         "  By fewest tokens, half of the requests miss a limit; my router sends a question to an engine that has\n"
         "  kept its document, so the engines compute less. Without hot documents, three GPUs would not be enough.\n",
         "reasons: >\n"
         "  it is fast and cheap it is fast and cheap it is fast and cheap it is fast and cheap it is fast and cheap "
         "it is fast and cheap it is fast and cheap it is fast and cheap\n"),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge the file's entries, then the plan's rules, limits and price, and finally the reasons."""
    file = read_service(part.document.data)
    if file.faults:
        raise Verdict("failed", "not-a-plan", file.faults[0])
    if file.plan is None:
        raise Verdict("open", sentence=f"still empty: {', '.join(file.empty)}")
    _check_plan(part, file)
    words = file.words
    if len(words) < MIN_WORDS:
        raise part.wrong("no-reasons", count=len(words), least=MIN_WORDS)
    if len(set(words)) < MIN_DIFFERENT:
        raise part.wrong("same-words", count=len(words), different=len(set(words)))


def _find_router(plan_file: Path) -> Path:
    """Return the path of the learner's router. The course proves this judge with a plan alone, and then uses its solution."""
    file = plan_file.with_name("my_router.py")
    return file if file.is_file() else Path(__file__).parent.parent / "solutions" / file.name


def _check_plan(part: Part, file: ServiceFile) -> None:
    plan, load = file.plan, make_load(file.values["puzzle"])
    assert plan is not None
    trace = load.make_trace()
    for name, reason in (find_problems(load, plan, trace) | find_forbidden(load, plan)).items():
        if name not in WAYS:
            raise Verdict("failed", name, reason)
        raise part.wrong(name, reason=reason)
    router = Part(_find_router(part.file))
    choose = router.function("choose") if plan.router == MINE else None
    service = router.call(plan.run, load, trace, choose)
    row = router.call(price, load, plan, trace, choose)
    good, needed = row["goodput_percent"], load.good_percent
    if not row["within"]:
        late = sum(request.token_times_ns[0] - request.arrived_ns > load.ttft_ms * 1e6 for request in service.requests)
        bad = sum(not within for within in service.list_within(load.ttft_ms, load.tpot_ms))
        raise part.wrong("first-too-late" if late > bad / 2 else "tokens-too-slow", good=good, needed=needed)
    cheapest = find_cheapest(load, trace)
    least = cheapest["usd_per_million"] if cheapest else row["usd_per_million"]
    if row["usd_per_million"] > MAX_TIMES * least:
        raise part.wrong("dear", usd=row["usd_per_million"], least=least, good=good, needed=needed)
    part.note(f"{good:.1f} % of the requests meet both limits, for {row['usd_per_million']:.2f} dollars a million good tokens")
