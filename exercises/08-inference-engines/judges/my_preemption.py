"""Judge my_preemption.py of 8.3 on several GPUs, models, lengths and links."""

from __future__ import annotations

from typing import Any

from step_clock import Clock

from gpucourse.judge import Case, Part, Way

WAYS = {
    "one-by-one": Way(
        "you compute the tokens one after the other ({given} ns instead of {right}): all of them are known, like those of a "
        "prompt, so one step computes them together",
        (
            "clock.ns([*rows, (0, tokens)])",
            "(clock.ns(rows) if rows else 0) + sum(clock.ns([(past, 1)]) for past in range(tokens))",
        ),
    ),
    "as-if-kept": Way(
        "your step has the tokens in the cache and computes as many new ones: after a preemption, none of them is in the cache",
        ("(0, tokens)", "(tokens, tokens)"),
    ),
    "one-token": Way(
        "your step computes a single token and has the others in the cache: but their pages were released, and all {tokens} "
        "are computed again",
        ("(0, tokens)", "(tokens - 1, 1)"),
    ),
    "whole-step": Way(
        "you count the whole step ({given} ns): without the tokens, its other requests would have taken {others} ns anyway",
        (" - (clock.ns(rows) if rows else 0)", ""),
    ),
    "step-of-its-own": Way(
        "you count a step of its own ({given} ns), which reads all weights once more: beside other requests the tokens are "
        "computed in a step that takes place anyway",
        ("clock.ns([*rows, (0, tokens)]) - (clock.ns(rows) if rows else 0)", "clock.ns([(0, tokens)])"),
    ),
    "always-a-difference": Way(
        "you subtract a step without requests: without others there would be no step, so nothing would be computed and no "
        "weights would be read",
        ("(clock.ns(rows) if rows else 0)", "clock.ns(rows)"),
    ),
    "once": Way(
        "{given} ns is one direction: the bytes go out, and later they come back",
        ("return 2 * tokens", "return tokens"),
    ),
    "bits": Way(
        "{given} ns would be right for a link of {link} Gbit/s: it carries {link} gigabytes a second",
        ("cache_bytes / link_gb_per_s", "8 * cache_bytes / link_gb_per_s"),
    ),
    "copies-forgotten": Way(
        "the time of the bytes is right, but starting a copy takes time as well: {copies:g} copies a token, {copy_ns} ns each",
        (" + copies_per_token * copy_ns", ""),
    ),
    "copies-once": Way(
        "the bytes cross the link twice, and so do the copies: {copies:g} a token in each direction",
        (
            "2 * tokens * (cache_bytes / link_gb_per_s + copies_per_token * copy_ns)",
            "tokens * (2 * cache_bytes / link_gb_per_s + copies_per_token * copy_ns)",
        ),
    ),
    "for-one-token": Way(
        "{given} ns is the time of one token, but there are {tokens}",
        ("2 * tokens *", "2 *"),
    ),
}
CLOCKS = {
    "an L4": Clock(),
    "an H100": Clock(gpu="h100"),
    "70B on an H200": Clock("llama-3.1-70b", "h200", overhead_ns=500_000),
}
ROWS = ([], [(700, 1)] * 20, [(0, 300), (90, 1)])
LINKS = {"large copies": (12.0, 0.0, 0), "small copies": (12.0, 4.0, 10_000), "a fast link": (55.0, 0.5, 3_000)}


def judge(part: Part) -> None:
    """Judge recompute_ns by the clock, then swap_ns by its formula."""
    recompute, swap = part.function("recompute_ns"), part.function("swap_ns")
    lengths = (1, 17, 300, 5000)
    cases = []
    for name, clock in CLOCKS.items():
        for tokens in lengths:
            for rows in ROWS:
                others = clock.ns(rows) if rows else 0
                alone, right = clock.ns([(0, tokens)]), clock.ns([*rows, (0, tokens)]) - others
                case = f"{tokens} token{'s' if tokens > 1 else ''} again beside {len(rows)} requests, {name}"
                ways: dict[Any, Any] = {
                    "one-by-one": sum(clock.ns([(past, 1)]) for past in range(tokens)),
                    "as-if-kept": clock.ns([*rows, (tokens, tokens)]) - others,
                    "one-token": clock.ns([*rows, (tokens - 1, 1)]) - others,
                    "whole-step": right + others,
                    "step-of-its-own": alone,
                    "always-a-difference": right if rows else alone - clock.ns([]),
                }
                given = part.call(recompute, tokens, list(rows), clock, case=case)
                cases.append(Case(case, given, right, ways, {"tokens": tokens, "others": others}))
    part.compare(cases)
    cases = []
    for name, (link, copies, copy_ns) in LINKS.items():
        for tokens, size in ((1, 131_072), (17, 70_272), (2000, 131_072)):
            case = f"{tokens} tokens of {size:,} bytes, {name}"
            one_way, started = tokens * size / link, tokens * copies * copy_ns
            ways = {
                "once": one_way + started,
                "bits": 2 * (8 * one_way + started),
                "copies-forgotten": 2 * one_way,
                "copies-once": 2 * one_way + started,
                "for-one-token": 2 * (one_way + started) / tokens,
            }
            values = {"tokens": tokens, "link": link, "copies": copies, "copy_ns": copy_ns}
            result = part.call(swap, tokens, size, link, copies, copy_ns, case=case)
            cases.append(Case(case, result, 2 * (one_way + started), ways, values))
    part.compare(cases, tolerance=1e-3)  # whole nanoseconds are as good
    part.note(f"right for {len(lengths) * len(CLOCKS) * len(ROWS)} steps and {len(cases)} ways over a link")
