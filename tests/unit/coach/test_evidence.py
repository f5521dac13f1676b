"""One log of several ranks, as a batch job writes it: which rank failed by itself, and which only lost its peer."""

from __future__ import annotations

import pytest

from gpucourse.coach.evidence import Evidence, Log
from gpucourse.coach.recognise import recognise

CAUSE = """Traceback (most recent call last):
  File "/w/train.py", line 12, in <module>
    raise ValueError("bad label 11")
ValueError: bad label 11
"""
VICTIM = """Traceback (most recent call last):
  File "/w/train.py", line 30, in <module>
    dist.barrier()
RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:14461
"""
REPORT = """Traceback (most recent call last):
  File "/env/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  exitcode  : 1 (pid: 4362)
============================================================
"""
ENDS = "srun: error: node2: task 1: Exited with exit code 1\nsrun: error: node1: task 0: Exited with exit code 1\n"


def label(text: str, prefix: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def diagnose(text: str) -> list[tuple[str, list[int], str]]:
    log = Log(node="node1", rank=0, text=text, code=1, at=5.0)
    evidence = Evidence(exercise="2.1", module="2", run="otter", state="failed", mode="local", planned={}, logs=(log,))
    return [(diagnosis.symptom, diagnosis.ranks, diagnosis.seen[0].where) for diagnosis in recognise(evidence)]


@pytest.mark.parametrize("form", ["[rank{}]: ", "{}: [rank{}]: ", "[default{}]:[rank{}]: ", "{}: "])
def test_rank_that_failed_by_itself_is_distinguished_from_its_victim(form: str) -> None:
    cause, victim = (label(text, form.format(rank, rank)) for rank, text in ((1, CAUSE), (0, VICTIM)))
    expected = [("script-error", [1], "train.py, line 12")]
    assert diagnose(f"starting\n{cause}{victim}{ENDS}") == expected
    assert diagnose(f"starting\n{victim}{cause}{REPORT}{ENDS}") == expected


def test_split_shared_logs_does_not_mistake_printed_numbers_for_labels() -> None:
    assert diagnose(f"0: 0.91\n1: 0.84\n{CAUSE}{ENDS}") == [("script-error", [0], "train.py, line 12")]


def test_traceback_of_a_launcher_is_not_a_cause() -> None:
    assert diagnose(CAUSE + REPORT + ENDS) == [("script-error", [0], "train.py, line 12")]
    line = "/env/bin/python: can't open file '/w/trian.py': [Errno 2] No such file or directory\n"
    assert diagnose(line + REPORT + ENDS) == [("file-missing", [0], "")]


def test_evidence_of_a_lost_rank_is_not_a_connection_error_of_the_script() -> None:
    for error in ("ConnectionRefusedError: [Errno 111] Connection refused", "BrokenPipeError: [Errno 32] Broken pipe"):
        assert diagnose(CAUSE.replace("ValueError: bad label 11\n", f"{error}\n"))[0][0] == "script-error"
