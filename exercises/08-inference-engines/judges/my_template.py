"""Judge my_template.yaml of 8.4 by the share of the prompts that a prefix cache finds, compared with all field orders."""

from __future__ import annotations

from template import FIELDS, find_best, measure_found, read_template

from gpucourse.judge import Part, Verdict, Way

CLOSE_POINTS = 1.0
WAYS = {
    "stamp-first": Way(
        "{found:.1f} % of the tokens are found, but {best:.1f} % are possible: {early} is different in each request, and "
        "comes before {late}. All text after it has another beginning each time, and is never found",
        (
            "[tools, system, documents, history, user, time, request_id]",
            "[time, tools, system, documents, history, user, request_id]",
        ),
    ),
    "question-first": Way(
        "{found:.1f} % of the tokens are found, but {best:.1f} % are possible: the new question comes before {late}, which "
        "earlier requests have sent already",
        (
            "[tools, system, documents, history, user, time, request_id]",
            "[tools, system, documents, user, history, time, request_id]",
        ),
    ),
    "conversation-first": Way(
        "{found:.1f} % of the tokens are found, but {best:.1f} % are possible: the history belongs to one conversation, and "
        "it comes before {late}, which other conversations share",
        (
            "[tools, system, documents, history, user, time, request_id]",
            "[tools, system, history, documents, user, time, request_id]",
        ),
    ),
    "rarer-first": Way(
        "{found:.1f} % of the tokens are found, but {best:.1f} % are possible: {early} differs between prompts "
        "that have the same {late}. A field that more requests share comes first",
        (
            "[tools, system, documents, history, user, time, request_id]",
            "[system, tools, documents, history, user, time, request_id]",
        ),
    ),
}
SHARED = ("tools", "system", "documents", "history")  # from what all requests share to what one conversation shares


def judge(part: Part) -> None:
    """Judge the list of fields, then the share of the prompts' tokens that a prefix cache finds with this order."""
    file = read_template(part.document.data)
    if file.faults:
        raise Verdict("failed", "not-an-order", f"{part.file.name}: {file.faults[0]}")
    if file.order is None:
        raise Verdict("open", sentence=f"order needs all {len(FIELDS)} fields")
    percent, best = measure_found(file.order), find_best()
    if percent < best - CLOSE_POINTS:
        way, early, late = _find_cause(file.order)
        raise part.wrong(way, found=percent, best=best, early=early, late=late)
    part.note(f"{percent:.1f} % of the tokens are found; the best of all orders finds {best:.1f} %")


def _find_cause(order: list[str]) -> tuple[str, str, str]:
    """Return the mistake of the first field that comes too early, its name, and a field that should come before it."""
    pairs = [(early, late) for place, early in enumerate(order) for late in order[place + 1 :] if late in (*SHARED, "user")]
    for early, late in pairs:
        if early in ("time", "request_id"):
            return "stamp-first", early, late
        if early == "user" and late in SHARED:
            return "question-first", early, late
        if early in SHARED and late in SHARED and SHARED.index(early) > SHARED.index(late):
            return "conversation-first" if early == "history" else "rarer-first", early, late
    return "rarer-first", order[0], order[1]
