"""Judge my_plan.yaml of 6.6 by the formulas of plans.py: rules, memory, time among all valid plans, checkpoints, reasons."""

from __future__ import annotations

from decision_file import MIN_DIFFERENT, MIN_WORDS
from plan_file import PlanFile, read_plan
from plan_report import WORST_RANK_PERCENT
from plans import (
    bubble,
    find_problems,
    least_memory,
    list_valid_plans,
    memory,
    rank_percent,
    save_interval_times,
    step_seconds,
)
from targets import Work, work_of

from gpucourse.judge import Part, Verdict, Way

INTERVAL_TIMES = 3
WAYS = {
    "product": Way(
        "{reason}: every GPU has its own place, so the product of the three is the number of GPUs", ("dp: 4", "dp: 2")
    ),
    "heads": Way(
        "{reason}: a slice consists of whole heads, with their keys and values. If several query heads share them (in Llama 2 "
        "70B, 64 share 8), the smaller number is the limit",
        (
            "target: 1.3b\ncluster: 4xl4\npuzzle: 1\nranks:\n  dp: 4\n  pp: 1\n  tp: 1\n",
            "target: 70b\ncluster: 64xh100\npuzzle: 1\nranks:\n  dp: 4\n  pp: 1\n  tp: 16\n",
        ),
    ),
    "tp-over-nodes": Way(
        "{reason}. Slices add up their parts four times in every layer and micro-batch and wait for each sum, so they "
        "stay inside a node; only what is sent seldom or during computing may cross nodes: stages and copies",
        ("  dp: 4\n  pp: 1\n  tp: 1\n", "  dp: 1\n  pp: 1\n  tp: 4\n"),
    ),
    "layers": Way(
        "{reason}: all stages wait for the fullest one",
        (
            "cluster: 4xl4\npuzzle: 1\nranks:\n  dp: 4\n  pp: 1\n  tp: 1\n",
            "cluster: 64xh100\npuzzle: 1\nranks:\n  dp: 4\n  pp: 16\n  tp: 1\n",
        ),
    ),
    "few-micro-batches": Way(
        "{reason}: some stages would wait in every slot, and 1F1B cannot start. Take at least as many as stages, and several "
        "times as many for a small bubble",
        (
            "  dp: 4\n  pp: 1\n  tp: 1\nzero: 1\ncheckpointing: attention\nmicro_batches: 16\n",
            "  dp: 1\n  pp: 4\n  tp: 1\nzero: 0\ncheckpointing: attention\nmicro_batches: 2\n",
        ),
    ),
    "batch": Way(
        "{reason}: each copy must get the same number of sequences, in equal pieces", ("micro_batches: 16", "micro_batches: 12")
    ),
    "precision": Way(
        "{reason}: it would be emulated, many times slower. GPUs before compute capability 8.0 have only fp16, which needs "
        "loss scaling",
        (
            "cluster: 4xl4\npuzzle: 1\nranks:\n  dp: 4\n",
            "cluster: 2xt4\npuzzle: 1\nranks:\n  dp: 2\n",
        ),
    ),
    "zero-of-one": Way(
        "{reason}: with one copy there is nothing to shard over, so nothing is saved",
        ("  dp: 4\n  pp: 1\n", "  dp: 1\n  pp: 4\n"),
    ),
    "experts": Way(
        "{reason}: every rank of the group holds the same number of experts, and a model without experts has nothing to divide",
        ("  tp: 1\n", "  tp: 1\n  ep: 2\n"),
    ),
    "schedule": Way("{reason}", ("micro_batches: 16\n", "micro_batches: 16\nschedule: zero-bubble\n")),
    "nothing-fits": Way(
        "no plan fits {target} with sequences of {length:,} tokens on {cluster}: the smallest takes {least:.1f} GB per GPU, "
        "but only {usable:.1f} may be filled. Say so, and plan for a larger cluster or a smaller target",
        ("target: 1.3b", "target: 7b"),
    ),
    "does-not-fit": Way(
        "{reason}: weights {weights:.1f}, gradients {gradients:.1f}, optimizer {optimizer:.1f}, activations {activations:.1f} "
        "GB. Reduce the largest of them first",
        ("zero: 1", "zero: 0"),
    ),
    "slower-half": Way(
        "it fits, but {percent:.0f}% of the {count} valid plans have a shorter step: yours takes at least {step:.2f} s, the "
        "fastest {best:.2f} s. In your plan, {limit}",
        ("zero: 1", "zero: 3"),
    ),
    "save-interval": Way(
        "a checkpoint every {every:,} steps is {times:.2g} times Young's interval of {young:,.0f} s: {effect}",
        ("save_every: 5000", "save_every: 50"),
    ),
    "no-reasons": Way(
        "the plan is right, but its reasons have {count} of {least} words: what is the limit, what did you measure, what "
        "would change the plan?",
        (
            "does. By formula that sends as much as plain copies; 6.2 measured half as much again for torch's optimizer, and "
            "the link has\n  room for it. Nothing is sent inside a layer: no bubble, no sum to wait for. Longer sequences "
            "would need stages.\n",
            "does.\n",
        ),
    ),
    "same-words": Way(
        "the reasons have {count} words, but only {different} different ones: write what is true for this plan",
        (
            "Memory binds: 16 bytes per parameter are 21 GB, so a whole copy does not fit. With its optimizer sharded over "
            "four copies it\n  does. By formula that sends as much as plain copies; 6.2 measured half as much again for "
            "torch's optimizer, and the link has\n  room for it. Nothing is sent inside a layer: no bubble, no sum to wait "
            "for. Longer sequences would need stages.\n",
            "it fits and it is fast it fits and it is fast it fits and it is fast it fits and it is fast it fits and it is "
            "fast it fits and it is fast\n",
        ),
    ),
}


def judge(part: Part) -> None:
    """Judge the file's entries, then the plan's rules, memory, time and checkpoints, and finally the reasons."""
    file = read_plan(part.document.data)
    if file.faults:
        raise Verdict("failed", "not-a-plan", file.faults[0])
    if file.plan is None:
        raise Verdict("open", sentence=f"still empty: {', '.join(file.empty)}")
    work = work_of(file.values["target"], file.values["cluster"], file.values["puzzle"])
    _check_rules(part, work, file)
    _check_time(part, work, file)
    _check_reasons(part, file)


def _check_rules(part: Part, work: Work, file: PlanFile) -> None:
    plan = file.plan
    assert plan is not None
    problems = find_problems(work, plan)
    parts = {name: size / 1e9 for name, size in memory(work, plan).items()}
    for name, reason in problems.items():
        usable = work.cluster.usable_bytes / 1e9
        if name == "does-not-fit" and (least := least_memory(work) / 1e9) > usable:
            names = {"target": work.shape.name, "cluster": work.cluster.name, "length": work.length}
            raise part.wrong("nothing-fits", least=least, usable=usable, **names)
        raise part.wrong(name, reason=reason, **parts)
    part.note(f"{parts['total']:.1f} GB on the fullest GPU: " + ", ".join(
        f"{name} {parts[name]:.1f}" for name in ("weights", "gradients", "optimizer", "activations")))  # fmt: skip


def _check_time(part: Part, work: Work, file: PlanFile) -> None:
    plan = file.plan
    assert plan is not None
    seconds, valid = step_seconds(work, plan), list_valid_plans(work, plan)
    percent = rank_percent(valid, seconds["step"])
    if percent > WORST_RANK_PERCENT:
        shares = {
            f"the bubble is {100 * bubble(plan):.0f} % of the pipeline": seconds["pipeline"] * bubble(plan),
            f"the GPUs wait {seconds['sums']:.2f} s for the sums of tp and the exchanges of ep": seconds["sums"],
            f"pp, dp and cp send for {seconds['links']:.2f} s, longer than it computes": seconds["step"] - seconds["pipeline"],
            "computing itself takes longest: recompute less, or use 16 bits?": valid[0][0] / 10,
        }  # fmt: skip
        limit = max(shares, key=lambda name: shares[name])
        values = {"count": len(valid), "step": seconds["step"], "best": valid[0][0], "limit": limit}
        raise part.wrong("slower-half", percent=percent, **values)
    part.note(f"at least {seconds['step']:.2f} s per step: {percent:.0f}% of {len(valid)} valid plans are faster")
    times, young = save_interval_times(work, plan)
    if not 1 / INTERVAL_TIMES <= times <= INTERVAL_TIMES:
        effect = "saving costs more than failures would" if times < 1 else "failures cost more than saving would"
        raise part.wrong("save-interval", every=plan.save_every, times=times, young=young, effect=effect)


def _check_reasons(part: Part, file: PlanFile) -> None:
    words = file.words
    if len(words) < MIN_WORDS:
        raise part.wrong("no-reasons", count=len(words), least=MIN_WORDS)
    if len(set(words)) < MIN_DIFFERENT:
        raise part.wrong("same-words", count=len(words), different=len(set(words)))
