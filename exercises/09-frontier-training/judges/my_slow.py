"""Judge my_slow.py of 9.8 with 24 small jobs: a GPU, a link, a data loader, or nothing is sick; GPUs are 12 % or 8 % slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpucourse.judge import Part, Verdict, Way

JOBS, STEPS, LEAST = 24, 12, 1.08  # LEAST: the least that my_slow.py promises for a sick GPU
WAYS = {
    "most-waiting": Way(
        "in {case_name} you blame rank {blamed}, which waits most. It waits because others are slow: it is a victim",
        ("    compute = seconds", '    return "gpu", int((seconds["wait_tp"] + seconds["wait_pp"] + seconds["wait_dp"])'
         '.mean(0).argmax())\n    compute = seconds'),
    ),
    "least-waiting": Way(
        "in {case_name} you blame rank {blamed}, which waits least. Some stages wait less than others by "
        "design: compare what they "
        "compute, within a stage",
        ("    compute = seconds", '    return "gpu", int((seconds["wait_tp"] + seconds["wait_pp"] + seconds["wait_dp"])'
         '.mean(0).argmin())\n    compute = seconds'),
    ),
    "longest-average": Way(
        "in {case_name} you blame rank {blamed}: one pause in one step made its average the longest. A sick part is "
        "slow in every step, so take the median of the steps",
        ('compute = seconds["compute"].median(0).values', 'compute = seconds["compute"].mean(0)'),
    ),
    "one-step": Way(
        "in {case_name} you blame rank {blamed}, which paused in the first step. Look at all {steps} steps",
        ('compute = seconds["compute"].median(0).values', 'compute = seconds["compute"][0]'),
    ),
    "across-stages": Way(
        "in {case_name} you blame rank {blamed}, of the {place} stage, which has more to compute than the "
        "others: compare a rank with "
        "its own stage",
        ("relative = compute / stages[None, :, None]", "relative = compute / compute.median()"),
    ),
    "always-somebody": Way(
        "in {case_name} nothing is sick, and you blame {kind} {blamed}: times vary by 1 %, and some rank is always the "
        "slowest",
        ("relative.max() > 1.05", "relative.max() > 1.001"),
    ),
    "eight-percent-missed": Way(
        "GPUs that compute 12 % longer are found. In {case_name} one computes 8 % longer than its stage in every step, and "
        "you returned {kind}. How far apart are the ranks of one stage in a healthy job, once pauses are gone?",
        ("relative.max() > 1.05", "relative.max() > 1.1"),
    ),
    "links-forgotten": Way(
        "in {case_name} the rings of one stage take much longer than the others, in every step: its link "
        "is slow, but you returned {kind}",
        ("rings.max() > 1.5 * rings.median()", "rings.max() > 1000"),
    ),
    "data-forgotten": Way(
        "in {case_name} one copy comes last in nearly every step, though no GPU of it computes longer: its batch came late. "
        "You returned {kind}",
        (">= 0.75:", "> 2:"),
    ),
    "number-of-another": Way(
        "in {case_name} the word is right, and the number is {blamed} instead of {right}: rank (d * pp + p) * tp + t is slice "
        "t of stage p of copy d",
        ("int(relative.argmax())", "int(relative.transpose(0, 1).argmax())"),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge 24 jobs of 96 ranks over 12 steps, six of each kind. In half of the jobs, a sick GPU is 8 % slow."""
    import torch
    from jobs import SICK, Layout, slow_down

    torch.set_num_threads(1)  # thousands of tiny tensors: threads would only wait for each other
    find_slow = part.function("find_slow")
    layout = Layout(6, 4, 4, 3)
    answers = []
    for seed in range(JOBS):
        job = slow_down(layout, SICK[seed % 4], seed, steps=STEPS, slower=_slower(seed))
        case = f"job {seed} of 96 ranks"
        answer = part.call(find_slow, {name: seconds.clone() for name, seconds in job.seconds.items()}, case=case)
        if not isinstance(answer, (tuple, list)) or len(answer) != 2 or answer[0] not in SICK:
            raise Verdict(
                "failed", "no-pair", f"it returned {answer!r:.80} instead of a word of {', '.join(SICK)} and a number", case
            )
        answers.append((job, (answer[0], answer[1]), case))
    wrong = [(job, answer, case) for job, answer, case in answers if answer != job.sick]
    if wrong:
        _explain(part, answers, wrong)
    part.note(f"{JOBS} of {JOBS} jobs")


def _slower(seed: int) -> float:
    """Return how many times as long the sick GPU of a job computes."""
    return LEAST if seed // 4 % 2 else 1.12


def _relative(job: Any, compute: Any, *, by_stage: bool = True) -> int:
    """Return the rank that computes the longest, relative to its stage or to all ranks."""
    stages = compute.transpose(0, 1).flatten(1).median(1).values
    return int((compute / (stages[None, :, None] if by_stage else compute.median())).argmax())


def _explain(part: Part, answers: list[Any], wrong: list[Any]) -> None:
    """Raise the verdict on wrong answers: the mistake that explains them, or how many are right."""
    gpu_jobs = [(job, answer, case) for job, answer, case in answers if job.sick[0] == "gpu"]
    first, (kind, number), name = wrong[0]
    values = {"case_name": name, "blamed": number, "kind": kind, "right": first.sick[1], "steps": STEPS}

    def waits(job: Any) -> Any:
        return sum(job.seconds[key] for key in ("wait_tp", "wait_pp", "wait_dp")).mean(0)

    rules: dict[str, Callable[[Any], int]] = {
        "most-waiting": lambda job: int(waits(job).argmax()),
        "least-waiting": lambda job: int(waits(job).argmin()),
        "longest-average": lambda job: _relative(job, job.seconds["compute"].mean(0)),
        "one-step": lambda job: _relative(job, job.seconds["compute"][0]),
        "across-stages": lambda job: _relative(job, job.seconds["compute"].median(0).values, by_stage=False),
    }
    for way, rule in rules.items():
        blamed = [(job, answer) for job, answer, _ in answers if answer[0] == "gpu"]
        if blamed and all(answer[1] == rule(job) for job, answer in blamed):
            bad = [(job, answer, case) for job, answer, case in wrong if answer[0] == "gpu"]
            if bad:
                job, answer, case = bad[0]
                stage = answer[1] // job.layout.tp % job.layout.pp
                values |= {"case_name": case, "blamed": answer[1], "place": "first" if stage == 0 else "last"}
                raise part.wrong(way, case, **values)
    missed = [(answer, case) for job, answer, case in wrong if job.sick[0] == "gpu" and answer[0] != "gpu"]
    if len(missed) == len(wrong) and all(_slower(int(case.split()[1])) == LEAST for _, case in missed):
        raise part.wrong("eight-percent-missed", name, **values)
    for word, way in (("link", "links-forgotten"), ("data", "data-forgotten")):
        if {job.sick[0] for job, _, _ in wrong} == {word} and all(answer[0] != word for _, answer, _ in wrong):
            raise part.wrong(way, name, **values)
    healthy = [(answer, case) for job, answer, case in wrong if job.sick[0] == "nobody"]
    if all(job.sick[0] == answer[0] for job, answer, _ in wrong):
        raise part.wrong("number-of-another", name, **values)
    if healthy and all(answer == job.sick for job, answer, _ in gpu_jobs):
        answer, case = healthy[0]
        raise part.wrong("always-somebody", case, **values | {"case_name": case, "kind": answer[0], "blamed": answer[1]})
    right = sum(answer == job.sick for job, answer, _ in answers)
    text = f"{right} of {JOBS} jobs are right. In {name}, {first.sick[0]} is sick, and you returned {kind} {number}"
    raise Verdict("failed", "other", text, name)
