"""Judge my_accounts.py of 9.8 with a dense model, one with experts, and a week with interruptions."""

from __future__ import annotations

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
WEEK = [{"lost_hours": 1.5, "down_hours": 0.5}, {"lost_hours": 0.25, "down_hours": 2.0}]
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
        "{given} % instead of {right} %: what was trained since the last checkpoint is lost, too",
        ("one[\"lost_hours\"] + one[\"down_hours\"]", "one[\"down_hours\"]"),
    ),
    "of-the-cluster": Way(
        "{given} h instead of {right} h: that is the time between two failures anywhere in the cluster of "
        "{gpus:,} GPUs, not in a job"
        " of {job:,}",
        ("24 * days * gpus / failures / job_gpus", "24 * days / failures"),
    ),
    "share-upside-down": Way(
        "{given} h instead of {right} h: a job with fewer GPUs fails less often",
        ("gpus / failures / job_gpus", "job_gpus / failures / gpus"),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge the four figures, with inputs in which no two mistakes give the same number."""
    mfu, hfu = part.function("mfu"), part.function("hfu")
    goodput, hours = part.function("goodput"), part.function("hours_between_failures")
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
    down = sum(one["down_hours"] for one in WEEK)
    lost = sum(one["lost_hours"] for one in WEEK)
    part.compare([
        Case("goodput of a week", part.call(goodput, 168.0, [dict(one) for one in WEEK], case="goodput"),
             100 * (168 - down - lost) / 168, {"lost-work-kept": 100 * (168 - down) / 168}),
        Case("goodput without interruptions", part.call(goodput, 24.0, [], case="goodput"), 100.0),
    ])  # fmt: skip
    part.compare([
        Case(f"a job of {job:,} GPUs", part.call(hours, 30, 10.0, 2000, job, case="hours_between_failures"),
             240 * 2000 / 30 / job, {"of-the-cluster": 8.0, "share-upside-down": 240 * job / 30 / 2000},
             {"gpus": 2000, "job": job})
        for job in (1, 500, 2000)
    ])  # fmt: skip
    part.note("MFU with and without experts, HFU, goodput, and the hours between failures")


def _mfu(
    job: dict[str, Any], *, attention: int = 12, causal: bool = True, key: str = "active_parameters", peak: str = "peak_tflops"
) -> float:
    """Return the MFU in percent, or that of a mistake."""
    products = attention * job["layers"] * job["attention_width"] * job["sequence"]
    products /= 2 if job["is_causal"] and causal else 1
    return 100 * float((6 * job[key] + products) * job["tokens_per_s"] / 1e12 / job[peak])
