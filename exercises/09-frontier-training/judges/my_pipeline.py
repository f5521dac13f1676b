"""Judge my_pipeline.yaml of 9.4. By the clock of pipelines, the schedule must keep the limits, and no other schedule that fits
may have a shorter step. Then the reasons are judged."""

from __future__ import annotations

from decision_file import MIN_DIFFERENT, MIN_WORDS
from pipeline_choice import find_best, list_rows, make_job
from pipeline_file import read_pipeline

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "memory": Way("{label}: {reason}", ("schedule: dualpipe\nchunks: 2", "schedule: gpipe\nchunks: 1")),
    "messages": Way(
        "{label}: {reason}. Each boundary between two stages on different ranks costs two messages for each micro-batch",
        ("schedule: dualpipe", "schedule: zb-v"),
    ),
    "copies": Way("{label}: {reason}", ("puzzle: 1", "puzzle: 7")),
    "split": Way("{label}: {reason}", ("puzzle: 1\nschedule: dualpipe\nchunks: 2", "puzzle: 8\nschedule: zb-h1\nchunks: 1")),
    "layers": Way(
        "{label}: {reason}", ("puzzle: 1\nschedule: dualpipe\nchunks: 2", "puzzle: 4\nschedule: interleaved\nchunks: 4")
    ),
    "longer-step": Way(
        "{label} fits, but a step takes {step:.0f}, and with another schedule that fits it takes {best:.0f}. What fills its "
        "gaps, and what do the limits still allow?",
        ("schedule: dualpipe\nchunks: 2", "schedule: 1f1b\nchunks: 1"),
    ),
    "no-reasons": Way(
        "the choice is right, but its reasons have {count} of {least} words: which limits exclude which schedules, and what "
        "would change your choice?",
        (
            "reasons: >\n  Messages exclude interleaved stages and ZB-V, memory excludes GPipe.\n"
            "  Of the rest, only DualPipe overlaps a forward with a backward, and its\n"
            "  9 micro-batches and second copy of the weights fit. With one copy of\n"
            "  the weights, ZB-H1 would have the shortest step.\n",
            "reasons: it is fast\n",
        ),
    ),
    "same-words": Way(
        "the reasons have {count} words, but only {different} different ones: write what is true for this job",
        (
            "reasons: >\n  Messages exclude interleaved stages and ZB-V, memory excludes GPipe.\n"
            "  Of the rest, only DualPipe overlaps a forward with a backward, and its\n"
            "  9 micro-batches and second copy of the weights fit. With one copy of\n"
            "  the weights, ZB-H1 would have the shortest step.\n",
            "reasons: it is fast and small it is fast and small it is fast and small it is fast and small it is fast and small "
            "it is fast and small it is fast and small it is fast and small\n",
        ),
    ),
}


def judge(part: Part) -> None:
    """Judge the file's entries, then the limits of the job and the step, and finally the reasons."""
    file = read_pipeline(part.document.data)
    if file.faults:
        raise Verdict("failed", "not-a-choice", file.faults[0])
    if file.choice is None:
        raise Verdict("open", sentence=f"still empty: {', '.join(file.empty)}")
    job = make_job(file.values["puzzle"])
    rows = list_rows(job)
    row = next(row for row in rows if (row["schedule"], row["chunks"]) == file.choice)
    for name, reason in row["problems"].items():
        raise part.wrong(name, label=row["label"], reason=reason)
    best = find_best(rows)
    if row["step"] > best["step"]:
        raise part.wrong("longer-step", label=row["label"], step=row["step"], best=best["step"])
    words = file.words
    if len(words) < MIN_WORDS:
        raise part.wrong("no-reasons", count=len(words), least=MIN_WORDS)
    if len(set(words)) < MIN_DIFFERENT:
        raise part.wrong("same-words", count=len(words), different=len(set(words)))
    part.note(f"{row['label']} fits, and no other schedule that fits has a shorter step than {row['step']:g}")
