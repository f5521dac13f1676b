"""Parsing words from Slurm's manual pages. test_words_releases.py uses the output of real releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.remote.agent.slurm import words as say

DATA = Path(__file__).parents[4] / "data" / "slurm"


def read_answer(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


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
def test_hosts_expands_a_list_of_nodes(spelled: str, nodes: list[str]) -> None:
    assert say.hosts(spelled) == nodes


def test_count_held_gpus_adds_nodes_and_types() -> None:
    assert (
        say.count_held_gpus(
            "JobId=1   Nodes=a GRES=gpu:a100:2(IDX:0-1)   Nodes=b GRES=gpu:a100:2(IDX:0-1) TresPerNode=gres/gpu:2"
        )
        == 4
    )


def test_queue_reads_documented_states() -> None:
    queue = say.queue(read_answer("documented/squeue.txt"))
    assert {job: say.phase(str(row["state"])) for job, row in queue.items()} == {
        **dict.fromkeys(("101", "102_7", "103", "104", "105"), "waiting"), "106": "unknown", "107": "ended",
    }  # fmt: skip
    assert say.explain_reason(str(queue["103"]["reason"])) == say.REASONS["ReqNodeNotAvail"]
    assert "drained" in say.explain_reason(str(queue["104"]["reason"]))
    assert say.code("0:125") == 253, "as scontrol has it of a job that ran out of memory"


def test_accounts_reads_sacct() -> None:
    accounts = say.accounts(read_answer("documented/sacct.txt"))
    assert {job: (row["state"], row["code"], row["node"]) for job, row in accounts.items()} == {
        "301": ("COMPLETED", 0, "node1"), "302": ("CANCELLED", 143, ""), "303_2": ("TIMEOUT", 0, "node[1-2]"),
        "304": ("NODE_FAIL", 1, "node3"),
    }  # fmt: skip


def test_ending_and_phase_of_an_unknown_word_are_no_end() -> None:
    assert say.phase("COMPLETED_SOMEHOW") == say.UNKNOWN
    assert say.phase("") == say.UNKNOWN
    assert say.ending("COMPLETED_SOMEHOW") == "lost"


def test_nodes_reads_gpus_states_and_reasons() -> None:
    node_list = say.nodes(read_answer("documented/sinfo.txt"))
    assert [(row["name"], row["partition"], row["gpus"], say.usable(str(row["state"])), row["open"]) for row in node_list] == [
        ("gpu01", "a100", 4, True, True), ("gpu02", "a100", 4, False, True), ("gpu02", "debug", 4, False, False),
        ("gpu03", "a100", 4, True, True), ("gpu04", "a100", 0, False, True), ("cpu01", "cpu", 0, True, True),
    ]  # fmt: skip
    assert node_list[4]["reason"] == "Kernel | update"
    assert say.usable("mixed-"), "as 24.11 has it of a node that jobs are planned for"


def test_parse_failed_tasks_reads_the_words_of_srun() -> None:
    log = "srun: error: node3: task 2: Segmentation fault\nsrun: error: node2: task 1: Terminated\n"
    assert say.parse_failed_tasks(log) == [(2, 139, "node3"), (1, 143, "node2")]
    assert say.parse_failed_tasks("srun: error: n1: tasks 0,2-3: Exited with exit code 1\n") == [
        (0, 1, "n1"), (2, 1, "n1"), (3, 1, "n1"),
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["", "|", "garbage", "1|2|3", "a|b|c|d|e|f|g|h|i"])
def test_details_and_queue_leave_out_lines_of_another_kind(line: str) -> None:
    assert say.queue(line) == {}
    assert say.details(line) == {}
    assert say.accounts("|".join(line.split("|")[:6])) == {}


@pytest.mark.parametrize(
    ("reason", "meaning", "never"),
    [
        ("Priority", "other jobs are ahead of it", False),
        ("AssocGrpGRESMinutes", "the computing time of its account is used up", True),
        ("QOSMaxWallDurationPerJobLimit", "it asks for more time than its QoS allows", True),
        ("AssocMaxJobsLimit", "your jobs have reached the limit of its account", False),
        ("QOSMaxGRESPerUser", "you or your group have reached a limit of its QoS", False),
        ("QOSMaxCpuPerJobLimit", "it asks for more than its QoS allows for one job", True),
        ("MaxGRESPerAccount", "you or your group have reached a limit of its account", False),
        ("ReqNodeNotAvail, UnavailableNodes:gpu1", "a node that it needs is down, drained or reserved", False),
        ("Unheard", "", False),
    ],
)
def test_explain_reason_knows_the_limits_of_accounting(reason: str, meaning: str, never: bool) -> None:
    assert (say.explain_reason(reason), say.never_starts(reason)) == (meaning, never)


def test_usage_adds_the_starts_of_a_job_and_names_who_cancelled_it() -> None:
    tres = "billing=4,cpu=4,gres/gpu=2,gres/gpu:a100=2,mem=8G,node=1"
    text = f"7|PREEMPTED|1800|{tres}\n7|COMPLETED|3600|{tres}\n8|CANCELLED by 0|0|\n9|RUNNING|60|{tres}\n"
    assert say.usage(text) == {
        "7": {"cpu_hours": 6.0, "gpu_hours": 3.0, "cancelled_by": ""},
        "8": {"cpu_hours": 0.0, "gpu_hours": 0.0, "cancelled_by": "0"},
    }
