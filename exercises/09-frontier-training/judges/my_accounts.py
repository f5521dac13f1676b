"""Judge my_accounts.py of 9.8 with a dense model, one with experts, and logs of jobs with interruptions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from gpucourse.judge import Case, Part, Way

DENSE = {"parameters": 8e9, "active_parameters": 8e9, "layers": 32, "attention_width": 4096, "sequence": 8192,
         "is_causal": True, "tokens_per_s": 7000.0, "peak_tflops": 989.0, "sparse_peak_tflops": 1979.0}  # fmt: skip
EXPERTS = DENSE | {
    "parameters": 235e9,
    "active_parameters": 22e9,
    "layers": 94,
    "attention_width": 8192,
    "tokens_per_s": 2100.0,
}
LOGS = {
    "no interruption": "0 trains 0, 2 saves 100, 2.5 trains 100, 5 ends 250",
    "an interruption before anything was saved": "10 trains 0, 12 stops 200, 13 trains 0, 18 ends 500",
    "one interruption": "0 trains 0, 3 saves 300, 3.25 trains 300, 5 stops 480, 6 trains 300, 10 ends 700",
    "an interruption while a state is saved":
        "0 trains 0, 2 saves 200, 2.25 trains 200, 5 saves 470, 5.5 stops 470, 6 trains 200, 8 ends 400",
    "a state that is loaded although a newer one was saved":
        "0 trains 0, 2 saves 200, 2.25 trains 200, 4 saves 370, 4.25 trains 370, 5 stops 440, 5.5 trains 200, 8 ends 450",
    "a step that is reached twice, the second time more slowly":
        "0 trains 0, 1 saves 100, 1.25 trains 100, 2.25 saves 200, 2.5 stops 200, 3 trains 100, 5 saves 200, 5.25 trains 200, "
        "6 stops 240, 7 trains 200, 9 ends 300",
}  # fmt: skip
LOST = ("lost-work-kept", "newest-state", "first-of-two", "saving-counts", "end-lost", "of-the-training")
WAYS = {
    "attention-forgotten": Way(
        "{given} % instead of {right} %: 6 FLOPs for each parameter leave out attention, whose products with all tokens "
        "belong to no parameter",
        ("flops = 6 * job[\"active_parameters\"] + attention", "flops = 6 * job[\"active_parameters\"]"),
    ),
    "causal-ignored": Way(
        "{given} % instead of {right} %: with is_causal, a token meets half of the sequence on average",
        (" / (2 if job[\"is_causal\"] else 1)", ""),
    ),
    "forward-only": Way(
        "{given} % instead of {right} %: that is the attention of forward alone. Backward has twice as many products",
        ("12 * job[\"layers\"]", "4 * job[\"layers\"]"),
    ),
    "all-experts": Way(
        "{given} % instead of {right} %: a token meets {active:.0f} of {all:.0f} billion parameters",
        ("6 * job[\"active_parameters\"]", "6 * job[\"parameters\"]"),
    ),
    "sparse-peak": Way(
        "{given} % instead of {right} %: 1,979 TFLOP/s need matrices in which half of the numbers are 0. Dense ones reach half",
        ("job[\"peak_tflops\"]", "job[\"sparse_peak_tflops\"]"),
    ),
    "recompute-ignored": Way(
        "HFU is {given} instead of {right}: a forward that is computed once more is work of the hardware, "
        "though not of the model",
        ("mfu_percent * (1 + recomputed / 3)", "mfu_percent"),
    ),
    "recompute-as-a-whole": Way(
        "HFU is {given} instead of {right}: only the forward is computed again, and that is a third of a step",
        ("(1 + recomputed / 3)", "(1 + recomputed)"),
    ),
    "lost-work-kept": Way(
        "{given} % instead of {right} %: you counted all hours of training. What was trained after the state that is loaded "
        "is lost",
        ('kept = saved[entry["step"]] + following', 'kept += following'),
    ),
    "newest-state": Way(
        "{given} % instead of {right} %: the job does not always continue from the newest state. `trains` says after which "
        "step it continues, and everything later is lost, also what was saved",
        ('saved[entry["step"]] + following', "[*saved.values()][-1] + following"),
    ),
    "first-of-two": Way(
        "{given} % instead of {right} %: the job saved a step twice, after different hours. It continues from the later one",
        ('saved[entry["step"]] = kept', 'saved.setdefault(entry["step"], kept)'),
    ),
    "saving-counts": Way(
        "{given} % instead of {right} %: while a state is saved, training pauses",
        ('saved[entry["step"]] = kept', 'saved[entry["step"]] = kept + following["hour"] - entry["hour"]'),
    ),
    "end-lost": Way(
        "{given} % instead of {right} %: at the end of the log the job trains, and still has what it has not saved yet",
        ('following["hour"] - entry["hour"]\n', '(following["hour"] - entry["hour"]) * (following["event"] != "ends")\n'),
    ),
    "of-the-training": Way(
        "{given} % instead of {right} %: you divided by the hours of training. The hours in which nothing ran count as well",
        ('(log[-1]["hour"] - log[0]["hour"])',
         'sum(after["hour"] - entry["hour"] for entry, after in pairwise(log) if entry["event"] == "trains")'),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge the three figures, with inputs in which no two mistakes give the same number."""
    mfu, hfu = part.function("mfu"), part.function("hfu")
    goodput_percent = part.function("goodput_percent")
    cases = []
    for name, job in (
        ("a dense model", DENSE),
        ("experts", EXPERTS),
        ("a dense model, not causal", DENSE | {"is_causal": False}),
    ):
        ways = {"attention-forgotten": _mfu(job, attention=0), "causal-ignored": _mfu(job, causal=False),
                "forward-only": _mfu(job, attention=4), "all-experts": _mfu(job, key="parameters"),
                "sparse-peak": _mfu(job, peak="sparse_peak_tflops")}  # fmt: skip
        values = {"active": job["active_parameters"] / 1e9, "all": job["parameters"] / 1e9}
        cases.append(Case(f"mfu of {name}", part.call(mfu, dict(job), case=f"mfu of {name}"), _mfu(job), ways, values))
    part.compare(cases)
    part.compare([
        Case(f"hfu, {share:g} computed again", part.call(hfu, 42.0, share, case="hfu"), 42.0 * (1 + share / 3),
             {"recompute-ignored": 42.0, "recompute-as-a-whole": 42.0 * (1 + share)})
        for share in (0.0, 1.0, 0.5)
    ])  # fmt: skip
    part.compare([
        Case(f"a log with {name}", part.call(goodput_percent, _read(log), case=f"a log with {name}"), _count_kept(_read(log)),
             {mistake: _count_kept(_read(log), mistake) for mistake in LOST})
        for name, log in LOGS.items()
    ])  # fmt: skip
    part.note("MFU with and without experts, HFU, and the goodput of six logs")


def _mfu(
    job: dict[str, Any], *, attention: int = 12, causal: bool = True, key: str = "active_parameters", peak: str = "peak_tflops"
) -> float:
    """Return the MFU in percent, right or as a part with a known mistake computes it."""
    products = attention * job["layers"] * job["attention_width"] * job["sequence"]
    products /= 2 if job["is_causal"] and causal else 1
    return 100 * float((6 * job[key] + products) * job["tokens_per_s"] / 1e12 / job[peak])


def _read(log: str) -> list[dict[str, Any]]:
    """Return the entries of a log that is written as "hour event step, hour event step"."""
    words = [entry.split() for entry in log.split(", ")]
    return [{"hour": float(hour), "event": event, "step": int(step)} for hour, event, step in words]


def _count_kept(log: list[dict[str, Any]], mistake: str = "") -> float:
    """Return the goodput of a log in percent, right or as a part with a known mistake computes it."""
    kept, trained, saved = 0.0, 0.0, {0: 0.0}
    for entry, following in pairwise(log):
        hours = following["hour"] - entry["hour"]
        if entry["event"] == "trains":
            trained += hours
            begin = [*saved.values()][-1] if mistake == "newest-state" else saved[entry["step"]]
            kept = begin + hours * (mistake != "end-lost" or following["event"] != "ends")
        elif entry["event"] == "saves" and not (mistake == "first-of-two" and entry["step"] in saved):
            saved[entry["step"]] = kept + hours * (mistake == "saving-counts")
    if mistake == "lost-work-kept":
        kept = trained
    return 100 * kept / (trained if mistake == "of-the-training" else log[-1]["hour"] - log[0]["hour"])
