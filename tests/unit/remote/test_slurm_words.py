"""What Slurm says, read: recorded answers of the version that was run, and the documented words of newer ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.remote.agent import slurm_words as say

DATA = Path(__file__).parents[2] / "data" / "slurm"


def said(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def test_a_queue_in_which_jobs_wait_and_run() -> None:
    found = say.queue(said("22.05.8/squeue-waiting.txt"))
    assert found["45"] == {
        "state": "PENDING", "reason": "Resources", "node": "", "submitted": "2026-11-21T05:49:34", "started": "", "ended": "",
    }  # fmt: skip
    assert {job: row["reason"] for job, row in found.items() if job.startswith("46_")} == dict.fromkeys(
        ("46_0", "46_1", "46_2", "46_3"), "Priority"
    )
    assert found["47"]["reason"] == "Dependency"
    assert (found["44"]["state"], found["44"]["node"], found["44"]["ended"]) == ("RUNNING", "node3", "")  # its limit is no end


def test_the_same_jobs_when_they_have_ended() -> None:
    found = say.queue(said("22.05.8/squeue-ended.txt"))
    assert {job: (row["state"], say.ending(str(row["state"]))) for job, row in found.items()} == {
        "42": ("COMPLETED", "exited"), "43": ("FAILED", "exited"),
        "44": ("CANCELLED", "cancelled"), "45": ("COMPLETED", "exited"),
        **{f"46_{task}": ("COMPLETED", "exited") for task in range(4)}, "47": ("COMPLETED", "exited"),
    }  # fmt: skip
    assert found["43"]["reason"] == ""  # NonZeroExitCode is no reason to wait
    details = say.details(said("22.05.8/scontrol-ended.txt"))
    assert set(details) == set(found)
    assert {job: details[job]["code"] for job in ("42", "43", "44", "46_3")} == {"42": 0, "43": 3, "44": 143, "46_3": 0}
    assert details["43"]["ended"] == "2026-11-21T05:49:38"


@pytest.mark.parametrize(
    ("spelled", "nodes"),
    [
        ("node1", ["node1"]),
        ("node[1-3]", ["node1", "node2", "node3"]),
        ("head,gpu[08-10,12]", ["head", "gpu08", "gpu09", "gpu10", "gpu12"]),
        ("a1,b-2,c[3]", ["a1", "b-2", "c3"]),
        ("", []),
    ],
)
def test_a_list_of_nodes(spelled: str, nodes: list[str]) -> None:
    assert say.hosts(spelled) == nodes


def test_a_held_job_says_so() -> None:
    row = say.queue(said("22.05.8/squeue-held.txt"))["51"]
    assert row["reason"] in say.HELD
    assert say.why(str(row["reason"]))


@pytest.mark.parametrize(("name", "count"), [("22.05.8/scontrol-d-running.txt", 1), ("22.05.8/scontrol-d-ended.txt", 0)])
def test_the_gpus_that_are_held_for_a_job(name: str, count: int) -> None:
    assert say.held(said(name)) == count


def test_gpus_of_a_type_and_on_several_nodes_count() -> None:
    assert say.held("JobId=1   Nodes=a GRES=gpu:a100:2(IDX:0-1)   Nodes=b GRES=gpu:a100:2(IDX:0-1) TresPerNode=gres/gpu:2") == 4


def test_words_of_newer_versions() -> None:
    found = say.queue(said("documented/squeue.txt"))
    assert {job: say.phase(str(row["state"])) for job, row in found.items()} == {
        **dict.fromkeys(("101", "102_7", "103", "104", "105"), "waiting"), "106": "unknown", "107": "ended",
    }  # fmt: skip
    assert say.why(str(found["103"]["reason"])) == say.REASONS["ReqNodeNotAvail"]
    assert "drained" in say.why(str(found["104"]["reason"]))
    assert say.details(said("documented/scontrol.txt"))["201"] | {"submitted": ""} == {
        "state": "OUT_OF_MEMORY", "code": 253, "restarts": 2, "reason": "OutOfMemory",
        "submitted": "", "started": "2026-11-21T05:49:35", "ended": "2026-11-21T05:49:38",
    }  # fmt: skip


def test_the_accounting_where_there_is_one() -> None:
    found = say.accounts(said("documented/sacct.txt"))
    assert {job: (row["state"], row["code"], row["node"]) for job, row in found.items()} == {
        "301": ("COMPLETED", 0, "node1"), "302": ("CANCELLED", 143, ""), "303_2": ("TIMEOUT", 0, "node[1-2]"),
        "304": ("NODE_FAIL", 1, "node3"),
    }  # fmt: skip


def test_an_unknown_word_is_never_taken_for_an_end() -> None:
    assert say.phase("COMPLETED_SOMEHOW") == say.UNKNOWN
    assert say.phase("") == say.UNKNOWN
    assert say.ending("COMPLETED_SOMEHOW") == "lost"


def test_every_word_of_the_table_has_a_phase_and_every_end_a_reason() -> None:
    for state, (phase, reason) in say.STATES.items():
        assert phase in {say.WAITING, say.RUNNING, say.ENDED}, state
        assert (reason in {"exited", "cancelled", "timed_out", "lost"}) == (phase == say.ENDED), state


def test_nodes_with_their_gpus_states_and_reasons() -> None:
    recorded = {row["node"]: row for row in say.nodes(said("22.05.8/sinfo-down.txt"))}
    assert {name: (say.usable(str(row["state"])), row["reason"]) for name, row in recorded.items()} == {
        "node1": (True, ""), "node2": (False, "Not responding"), "node3": (False, "bad fan"),
    }  # fmt: skip
    assert all(row["default"] and row["gpus"] == 1 for row in recorded.values())
    found = say.nodes(said("documented/sinfo.txt"))
    assert [(row["node"], row["partition"], row["gpus"], say.usable(str(row["state"])), row["open"]) for row in found] == [
        ("gpu01", "a100", 4, True, True), ("gpu02", "a100", 4, False, True), ("gpu02", "debug", 4, False, False),
        ("gpu03", "a100", 4, True, True), ("gpu04", "a100", 0, False, True), ("cpu01", "cpu", 0, True, True),
    ]  # fmt: skip
    assert found[4]["reason"] == "Kernel | update"


def test_who_failed_first_under_srun() -> None:
    assert say.failed_tasks(said("22.05.8/srun-exit.txt")) == [(1, 7, "node2")]
    assert say.failed_tasks(said("22.05.8/srun-killed.txt")) == [(2, 139, "node3"), (1, 143, "node2"), (0, 143, "node1")]
    assert say.failed_tasks("srun: error: n1: tasks 0,2-3: Exited with exit code 1\n") == [
        (0, 1, "n1"), (2, 1, "n1"), (3, 1, "n1"),
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["", "|", "garbage", "1|2|3", "a|b|c|d|e|f|g|h|i"])
def test_lines_of_another_kind_are_left_out(line: str) -> None:
    assert say.queue(line) == {}
    assert say.details(line) == {}
    assert say.accounts("|".join(line.split("|")[:6])) == {}
