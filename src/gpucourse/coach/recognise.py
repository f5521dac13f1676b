"""From evidence to diagnoses. Causes stand before what follows from them; among equals the rank that ended first counts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from gpucourse.coach.evidence import Evidence, Log
from gpucourse.coach.states import ended, joining, unseen
from gpucourse.coach.symptom import Symptom
from gpucourse.coach.symptoms import SYMPTOMS
from gpucourse.coach.words import raised
from gpucourse.model.diagnosis import Diagnosis, Quote

_QUOTES = 3
_MOST = 2
_WAITED = {"collective-timeout", "nccl-timeout"}  # said by ranks that came to a collective, of one that did not


@dataclass
class _Found:
    """One symptom, and every log that shows it."""

    symptom: Symptom
    log: Log
    match: re.Match[str]
    logs: list[Log] = field(default_factory=list)
    seen: list[Quote] = field(default_factory=list)


def recognise(evidence: Evidence) -> tuple[Diagnosis, ...]:
    """What the run suffered from, the likeliest first; what only follows from another diagnosis is left out.

    Empty where the run succeeded, was cancelled by the person, or shows nothing that is known.
    """
    if evidence.state in {"succeeded", "cancelled"}:
        return ()
    words = _by_words(evidence)
    causes = [_told(evidence, found) for found in words if found.symptom.weight == "cause"]
    follows = [_told(evidence, found) for found in words if found.symptom.weight == "follows"]
    unconnected = [one for one in follows if one.symptom == "wrong-interface"]
    victims = [log for found in words if found.symptom.weight == "follows" for log in found.logs]
    ranked = (
        [*causes, *joining(evidence)],
        ended(evidence, victims=victims),
        _errors(evidence, words),
        unseen(evidence, waiting=any(one.symptom in _WAITED for one in follows), victims=victims, unconnected=unconnected),
        follows,
    )
    best: dict[str, Diagnosis] = {}
    for each in next((some for some in ranked if some), []):
        best.setdefault(each.symptom, each)
    return (*[*best.values()][:_MOST], *(each for each in _clocks(evidence) if each.symptom not in best))


def _by_words(evidence: Evidence) -> list[_Found]:
    found: dict[int, _Found] = {}
    for log in evidence.suspects():
        shown = [(symptom, match) for symptom in SYMPTOMS if (match := symptom.search(log.told)) is not None]
        exact = any(symptom.weight == "cause" and not symptom.general for symptom, _ in shown)
        for symptom, match in shown:
            if symptom.general and exact:
                continue
            one = found.setdefault(id(symptom), _Found(symptom, log, match))
            one.logs.append(log)
            if len(one.seen) < _QUOTES:
                one.seen.append(log.quote(match.end() - 1))
    return list(found.values())


def _told(evidence: Evidence, found: _Found) -> Diagnosis:
    log = found.log
    words = {
        **{name: value or "" for name, value in found.match.groupdict().items()},
        "rank": "?" if log.rank is None else str(log.rank),
        "node": log.node,
        "exercise": evidence.exercise,
        "module": evidence.module,
        "run": evidence.run,
        "world": str(evidence.world_size),
    }
    return Diagnosis(
        symptom=found.symptom.word,
        title=_filled(found.symptom.title, words),
        why=_filled(found.symptom.why, words),
        next=_filled(found.symptom.next, words),
        ranks=sorted(one.rank for one in found.logs if one.rank is not None),
        nodes=list(dict.fromkeys(one.node for one in found.logs)),
        seen=found.seen,
    )


def _filled(text: str, words: dict[str, str]) -> str:
    """The text with {names} filled in. What a log said is put in as it stands, braces and all."""
    return re.sub(r"\{(\w+)\}", lambda match: words.get(match[1]) or "it", text)


def _errors(evidence: Evidence, words: list[_Found]) -> list[Diagnosis]:
    """The script's own mistake: the first rank that ended with a traceback which is nobody else's doing."""
    explained = {(log.node, log.rank) for found in words for log in found.logs}
    for log in evidence.suspects():
        if log.rank is None or log.ended_by_us or (log.node, log.rank) in explained or log.code in {None, 0}:
            continue
        if (error := raised(log.told)) is None:
            continue
        kind, what, place = error
        return [
            Diagnosis(
                symptom="script-error",
                title=f"Rank {log.rank} raised {kind.rpartition('.')[2]}",
                why=f"The script itself failed on rank {log.rank}{f': {what[:200]}' if what else ''}. If others failed "
                "after it, they only lost their peer.",
                next=f"gpucourse logs {evidence.run} --rank {log.rank}: the line above the error is where it happened",
                ranks=[log.rank],
                nodes=[log.node],
                seen=[log.quote(place)],
            )
        ]
    return []


def _clocks(evidence: Evidence) -> list[Diagnosis]:
    """Nodes whose clock is far from this computer's: what is ordered by time is then in doubt."""
    limit_s = 2.0
    off = {node: skew for node, skew in (evidence.skew_s or {}).items() if abs(skew) > limit_s}
    if not off:
        return []
    known = next(symptom for symptom in SYMPTOMS if symptom.word == "clock-skew")
    told = ", ".join(f"{node} is {abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}" for node, skew in off.items())
    one = Diagnosis(symptom=known.word, title=known.title, why=f"Against this computer {told}. {known.why}", next=known.next)
    return [replace(one, nodes=list(off))]
