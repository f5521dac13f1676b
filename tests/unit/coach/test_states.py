"""Ranks that ended without a message, fell silent, or never started: which rank is named, and for which reason."""

from __future__ import annotations

import pytest

from gpucourse.coach.evidence import Log
from gpucourse.coach.recognise import recognise
from gpucourse.coach.states import diagnose_ends, diagnose_join
from gpucourse.model.diagnosis import Silence
from gpucourse.model.record import NodeExit
from tests.unit.coach.test_recognise import evidence, log


def test_diagnose_silences_suspects_no_rank_that_ended_well() -> None:
    diagnoses = recognise(evidence(log(0, "retry after Connection refused: fine\n", code=0), log(1, "ValueError: x\n")))
    assert [diagnosis.symptom for diagnosis in diagnoses] == ["script-error"]


def test_diagnose_silences_names_the_silent_rank_and_none_that_waits_for_it() -> None:
    silences = (
        Silence(node="node0", rank=0, seconds=31, doing="waiting", last="step 7"),
        Silence(node="node1", rank=1, seconds=30, doing="stopped", last="step 6"),
    )
    logs = (log(0, "step 7\n", code=143, is_ended=True), log(1, "step 6\n", code=137, is_ended=True))
    diagnoses = recognise(evidence(*logs, state="timed_out", silences=silences))
    assert [(diagnosis.symptom, diagnosis.ranks) for diagnosis in diagnoses] == [("silent-rank", [1])]
    assert "stopped by a signal" in diagnoses[0].why
    assert diagnoses[0].seen[0].line == "step 6"


def test_diagnose_silences_names_several_silent_ranks_together() -> None:
    silences = tuple(Silence(node=f"node{rank}", rank=rank, seconds=30, doing="waiting", last="x") for rank in (0, 1))
    logs = [log(rank, "x\n", code=143, is_ended=True) for rank in (0, 1)]
    (diagnosis,) = recognise(evidence(*logs, state="timed_out", silences=silences))
    assert diagnosis.ranks == [0, 1]
    assert "--times" in diagnosis.next
    assert "--rank" not in diagnosis.next


def test_diagnose_silences_of_a_run_past_its_limit_without_a_silent_rank() -> None:
    logs = [log(rank, "step 7\n", code=143, is_ended=True) for rank in (0, 1)]
    assert recognise(evidence(*logs, state="timed_out"))[0].symptom == "time-limit"


def wait(rank: int, missing: int) -> Log:
    """Return a rank that waited at the rendezvous for the key of a missing rank."""
    return log(rank, f"DistStoreError: wait timeout after 9000ms, keys: /default_pg/0//cpu//{missing}\n")


@pytest.mark.parametrize(
    ("logs", "symptom", "ranks", "title"),
    [
        ((wait(0, 1), log(1, "begins\n", code=143, is_ended=True)), "hang-at-init", [1], "Rank 1 on node1 did not join"),
        ((wait(0, 3), wait(1, 3)), "wrong-world-size", [0, 1], "waited for rank 3, which was never started"),
        ((log(0, "DistStoreError: 2/4 clients joined.\n"),), "wrong-world-size", [0], "Rank 0 waited for rank 3"),
        ((wait(0, 1), wait(1, 1)), "rank-mismatch", [0, 1], "none is rank 1"),
    ],
)
def test_diagnose_join_names_the_rank_that_others_waited_for(
    logs: tuple[Log, ...], symptom: str, ranks: list[int], title: str
) -> None:
    (diagnosis,) = diagnose_join(evidence(*logs))
    assert (diagnosis.symptom, diagnosis.ranks) == (symptom, ranks)
    assert title in diagnosis.title
    assert diagnosis.seen[0].line == logs[0].text.strip()


def test_diagnose_ends_names_a_rank_that_ended_well_while_others_needed_it() -> None:
    victim, leaver = log(0, "Connection closed by peer\n"), log(1, "my share is done\n", code=0)
    (diagnosis,) = diagnose_ends(evidence(victim, leaver), victims=[victim])
    assert (diagnosis.symptom, diagnosis.ranks, diagnosis.seen[0].line) == ("left-early", [1], "my share is done")
    assert diagnose_ends(evidence(victim, leaver), victims=[]) == []


def test_states_name_a_rank_that_never_started() -> None:
    diagnoses = recognise(evidence(log(0, "begins\n", code=143, is_ended=True), state="timed_out"))
    assert [(diagnosis.symptom, diagnosis.ranks, diagnosis.nodes) for diagnosis in diagnoses] == [
        ("never-started", [1], ["node1"])
    ]
    launcher_diagnoses = recognise(evidence(Log(node="node0", rank=None, text="", code=1), state="timed_out"))
    assert [(diagnosis.symptom, diagnosis.ranks) for diagnosis in launcher_diagnoses] == [("never-started", [0, 1])]
    silences = tuple(Silence(node=f"node{rank}", rank=rank, seconds=120.0) for rank in (0, 1))
    launchers = tuple(Log(node=f"node{number}", rank=None, text="", code=143) for number in (0, 1))
    waiting = recognise(evidence(*launchers, state="timed_out", silences=silences))
    assert [(diagnosis.symptom, diagnosis.ranks) for diagnosis in waiting] == [("never-started", [0, 1])]


def test_states_name_a_dead_node() -> None:
    exits = (NodeExit(node="node0", code=1), NodeExit(node="node1", code=137, reason="lost"))
    diagnoses = recognise(evidence(log(0, "Connection closed by peer\n"), state="lost", node_exits=exits))
    assert [(diagnosis.symptom, diagnosis.nodes) for diagnosis in diagnoses] == [("node-lost", ["node1"])]
    assert "gpucourse deploy 3" in diagnoses[0].next
    live_diagnoses = recognise(evidence(log(0, "step\n", code=None), state="running", lost="node1: not reached again for 8 s"))
    assert live_diagnoses[0].symptom == "node-lost"
    assert "not reached again" in live_diagnoses[0].why


@pytest.mark.parametrize(("code", "symptom"), [(137, "rank-killed"), (139, "rank-crashed"), (3, "rank-exited")])
def test_states_name_a_rank_that_ended_without_a_message_by_its_code(code: int, symptom: str) -> None:
    victim = log(0, "Connection reset by peer\n", at=2.0) if code != 3 else log(0, "fine\n", code=143, is_ended=True)
    diagnoses = recognise(evidence(victim, log(1, "rank 1 begins\n", code=code)))
    assert [(diagnosis.symptom, diagnosis.ranks) for diagnosis in diagnoses] == [(symptom, [1])]


def test_states_explain_a_killed_rank_by_a_collective_only_if_a_peer_lost_it() -> None:
    killed_log = log(1, "rank 1 begins\n", code=137)
    cases = [
        ([log(0, "Connection reset by peer\n", at=2.0), killed_log], 2, "lost their peer in the middle of a collective."),
        ([log(0, "step 3\n", code=143, is_ended=True), killed_log], 2, "Others that were still at work were ended after it."),
        ([log(0, "alone\n", code=137)], 1, "because memory ran out."),
    ]
    for logs, world, end in cases:
        (diagnosis,) = recognise(evidence(*logs, world=world))
        assert diagnosis.why.endswith(end)


def test_states_name_a_file_that_slurm_cannot_open() -> None:
    (diagnosis,) = recognise(evidence(log(0, "", code=128 + 53)))
    assert diagnosis.title == "Slurm could not open the output or error file of the job on node0"
    assert "--error" in diagnosis.why
    assert "signal 42" in recognise(evidence(log(0, "", code=128 + 42)))[0].title
