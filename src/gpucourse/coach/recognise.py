"""Turn evidence into diagnoses. Causes come before their consequences; otherwise, the rank that ended first comes first."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpucourse.coach.evidence import Evidence, Log, split_shared_logs
from gpucourse.coach.states import diagnose_ends, diagnose_join, diagnose_silences
from gpucourse.coach.symptoms import SYMPTOMS, Symptom
from gpucourse.coach.words import find_exception, find_line, find_message
from gpucourse.model.diagnosis import Diagnosis, LogQuote

_MAX_QUOTES = 3
_MAX_DIAGNOSES = 2
_WAITED = {"collective-timeout", "nccl-timeout"}  # printed by ranks that reached a collective, about a rank that did not


@dataclass
class _Occurrence:
    """One symptom, and every log that shows it."""

    symptom: Symptom
    log: Log
    match: re.Match[str]
    logs: list[Log] = field(default_factory=list)
    seen: list[LogQuote] = field(default_factory=list)


def recognise(evidence: Evidence) -> tuple[Diagnosis, ...]:
    """Return the diagnoses of a run, the likeliest first. Consequences of another failure are left out if their cause was
    found.

    The result is empty if the run succeeded, was cancelled by the user, or shows no known symptom.
    """
    if evidence.state in {"succeeded", "cancelled"}:
        return ()
    evidence = split_shared_logs(evidence)
    words = _find_symptoms(evidence)
    causes = [_make_diagnosis(evidence, occurrence) for occurrence in words if occurrence.symptom.weight == "cause"]
    follows = [_make_diagnosis(evidence, occurrence) for occurrence in words if occurrence.symptom.weight == "follows"]
    unconnected = [diagnosis for diagnosis in follows if diagnosis.symptom == "wrong-interface"]
    victims = [log for occurrence in words if occurrence.symptom.weight == "follows" for log in occurrence.logs]
    ranked = (
        [*causes, *diagnose_join(evidence)],
        diagnose_ends(evidence, victims=victims),
        _diagnose_script_error(evidence, words),
        diagnose_silences(
            evidence,
            waiting=any(diagnosis.symptom in _WAITED for diagnosis in follows),
            victims=victims,
            unconnected=unconnected,
        ),
        follows,
    )
    by_symptom: dict[str, Diagnosis] = {}
    for diagnosis in next((diagnoses for diagnoses in ranked if diagnoses), []):
        by_symptom.setdefault(diagnosis.symptom, diagnosis)
    return (
        *[*by_symptom.values()][:_MAX_DIAGNOSES],
        *(diagnosis for diagnosis in _diagnose_clocks(evidence) if diagnosis.symptom not in by_symptom),
    )


def _find_symptoms(evidence: Evidence) -> list[_Occurrence]:
    occurrences: dict[int, _Occurrence] = {}
    for log in evidence.suspects():
        matches = [(symptom, match) for symptom in SYMPTOMS if (match := symptom.search(log.telling_text)) is not None]
        exact = any(symptom.weight == "cause" and not symptom.general for symptom, _ in matches)
        for symptom, match in matches:
            if symptom.general and exact:
                continue
            occurrence = occurrences.setdefault(id(symptom), _Occurrence(symptom, log, match))
            occurrence.logs.append(log)
            if len(occurrence.seen) < _MAX_QUOTES:
                occurrence.seen.append(log.quote(match.end() - 1))
    return list(occurrences.values())


def _make_diagnosis(evidence: Evidence, occurrence: _Occurrence) -> Diagnosis:
    log = occurrence.log
    words = {
        **occurrence.symptom.read_words(log.telling_text),
        **{name: value for name, value in occurrence.match.groupdict().items() if value},
        "rank": "?" if log.rank is None else str(log.rank),
        "node": log.node,
        "exercise": evidence.exercise,
        "module": evidence.module,
        "run": evidence.run,
        "world": str(evidence.world_size),
        "python": evidence.python.get(log.node) or "python",
    }
    return Diagnosis(
        symptom=occurrence.symptom.word,
        title=_fill_in(occurrence.symptom.title, words),
        why=_fill_in(occurrence.symptom.why, words),
        next=_fill_in(_choose_next(evidence, occurrence.symptom, words), words),
        ranks=sorted(source_log.rank for source_log in occurrence.logs if source_log.rank is not None),
        nodes=list(dict.fromkeys(source_log.node for source_log in occurrence.logs)),
        seen=occurrence.seen,
    )


def _choose_next(evidence: Evidence, symptom: Symptom, words: dict[str, str]) -> str:
    """Return the symptom's advice, or its alternative if the run's command line already follows that advice."""
    pattern = _fill_in(symptom.followed, {name: re.escape(value) for name, value in words.items()})
    return symptom.instead if pattern and re.search(pattern, evidence.typed) else symptom.next


def _fill_in(text: str, words: dict[str, str]) -> str:
    """Return the text with {names} filled in. Words from a log are inserted unchanged, braces included. A full stop after a
    word that already ends in punctuation is dropped."""

    def fill_in_word(match: re.Match[str]) -> str:
        word = words.get(match[1]) or "it"
        return word if match[2] and word.endswith((".", "!", "?")) else f"{word}{match[2]}"

    return re.sub(r"\{(\w+)\}(\.?)", fill_in_word, text)


def _diagnose_script_error(evidence: Evidence, words: list[_Occurrence]) -> list[Diagnosis]:
    """Diagnose an error of the script itself: find the first rank that ended with a traceback that no other failure
    explains."""
    explained = {
        (log.node, log.rank) for occurrence in words for log in occurrence.logs if _explains(evidence, occurrence, log)
    }
    for log in evidence.suspects():
        if log.rank is None or log.ended_by_us or (log.node, log.rank) in explained or log.code in {None, 0}:
            continue
        if (error := find_exception(log.telling_text)) is None:
            continue
        kind, place = error
        line = find_line(log.text[:place])
        return [
            Diagnosis(
                symptom="script-error",
                title=f"Rank {log.rank} raised {kind.rpartition('.')[2]}{f' in {line}' if line else ''}",
                why="The script itself failed. Ranks that failed after it only lost their peer.",
                next=f"gpucourse logs {evidence.run}{f' --rank {log.rank}' if evidence.planned else ''}",
                ranks=[log.rank],
                nodes=[log.node],
                seen=[log.quote(place)],
            )
        ]
    return []


def _explains(evidence: Evidence, occurrence: _Occurrence, log: Log) -> bool:
    """Return whether the symptom explains this rank's failure. If a launcher and several ranks share the log, a symptom that
    follows from another failure counts only if the rank's own exception shows it."""
    if occurrence.symptom.weight == "cause" or evidence.planned:
        return True
    error = find_exception(log.telling_text)
    return error is None or occurrence.symptom.search(find_message(log.telling_text, error[1])) is not None


def _diagnose_clocks(evidence: Evidence) -> list[Diagnosis]:
    """Diagnose nodes whose clock differs from this computer's by more than 2 seconds. Conclusions from the order of events are
    then in doubt."""
    limit_s = 2.0
    wrong_clocks = {node: skew for node, skew in (evidence.skew_s or {}).items() if abs(skew) > limit_s}
    if not wrong_clocks:
        return []
    symptom = next(symptom for symptom in SYMPTOMS if symptom.word == "clock-skew")
    skews = ", ".join(f"{node} is {abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}" for node, skew in wrong_clocks.items())
    explanation = f"Compared with this computer, {skews}. {symptom.why}"
    return [Diagnosis(symptom=symptom.word, title=symptom.title, why=explanation, next=symptom.next, nodes=list(wrong_clocks))]
