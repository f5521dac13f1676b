"""The ordinary output of a script is not a symptom; its last lines are. Ranks that only lost an NCCL peer are victims."""

from __future__ import annotations

import pytest

from gpucourse.coach.evidence import Log
from gpucourse.coach.recognise import recognise
from gpucourse.coach.words import LevelReader, blank_all_but_last_words, find_exception, find_line
from gpucourse.model.diagnosis import Silence
from tests.unit.coach.test_recognise import evidence, log

TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    step()\n'
MISTAKE = f"{TRACEBACK}ValueError: bad label 11\n"
WATCHDOG = """\
[rank{rank}]:[E1121 09:01:02.123 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=199, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.
[rank{rank}]:[E1121 09:01:02.125 ProcessGroupNCCL.cpp:681] [Rank {rank}] To avoid data inconsistency, we are taking the entire \
process down.
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 0 Rank {rank}] Process group watchdog thread terminated with exception
"""
REMOTE = f"""\
node0:412:498 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer node1<51234>
{TRACEBACK}torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1333, remote process exited or \
there was a network error, NCCL version 2.18.6
ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
"""


def waiting_log(rank: int = 0) -> Log:
    return log(rank, "step 7\n", 143, 9.0, is_ended=True)


def diagnose(*logs: Log, state: str = "failed", silences: tuple[Silence, ...] = ()) -> list[tuple[str, list[int]]]:
    return [(diagnosis.symptom, diagnosis.ranks) for diagnosis in recognise(evidence(*logs, state=state, silences=silences))]


@pytest.mark.parametrize(
    "output",
    [
        "tip: where CUDA out of memory or Address already in use shows, take less\n",
        "batch 512: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB; now 256\n",
        "warning: No space left on device is possible, NCCL error is not\n",
        f"{TRACEBACK}OSError: [Errno 98] Address already in use\n" + "".join(f"step {n}\n" for n in range(70)),
        "/lib/torch/cuda/__init__.py:129: UserWarning: CUDA initialization: Found no NVIDIA driver on your system\n",
    ],
)
def test_find_message_ignores_lines_that_were_printed_earlier(output: str) -> None:
    assert diagnose(waiting_log(), log(1, output + MISTAKE)) == [("script-error", [1])]
    assert diagnose(waiting_log(), log(1, f"{output}bye\n", 3)) == [("rank-exited", [1])]
    assert diagnose(log(0, "Connection closed by peer\n", at=2.0), log(1, output, 137)) == [("rank-killed", [1])]


@pytest.mark.parametrize(
    ("symptom", "line"),
    [
        ("out-of-memory", "RuntimeError: CUDA error: out of memory"),
        ("out-of-memory", "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array"),
        ("out-of-memory", "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        (
            "out-of-memory",
            "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried",
        ),
        ("nccl-error", "RuntimeError: NCCL Error 2: unhandled system error (run with NCCL_DEBUG=INFO for details)"),
        ("clock-skew", "botocore.exceptions.ClientError: (SignatureDoesNotMatch): Signature not yet current: 20261121T1"),
        ("wrong-interface", "RuntimeError: Gloo connectFullMesh failed with [../gloo/transport/tcp/pair.cc:144] no error"),
        ("wrong-interface", "RuntimeError: [../tcp/pair.cc:799] connect [127.0.1.1]:19427: Connection refused"),
        ("wrong-interface", "RuntimeError: [enforce fail at device.cc:84] ifa != nullptr. Unable to find address for: eth9"),
        (
            "different-models",
            "RuntimeError: DDP expects same model across all ranks, but Rank 0 has 4 params, while rank 1 has inconsistent 2.",
        ),
        ("unused-parameters", "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new"),
        ("wrong-arguments", "launcher.py: error: 8 nodes of 8 processes: there must be 1 to 32 processes in all"),
        ("meeting-point", "RuntimeError: connect() timed out. Original timeout was 60000 ms."),
        (
            "hang-at-init",
            "RuntimeError: Timed out in store based barrier on rank: 0, for key: x (world_size=2, worker_count=1)",
        ),
        (
            "hang-at-init",
            "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for workers. 1/2 workers joined.",
        ),
    ],
)
def test_words_of_other_versions_and_libraries_are_known(symptom: str, line: str) -> None:
    assert diagnose(log(0, TRACEBACK + line + "\n"), log(1, "begins\n", 143, 2.0, is_ended=True))[0][0] == symptom


@pytest.mark.parametrize(
    ("symptom", "text"),
    [
        ("wrong-arguments", "srun: unrecognized option '--container-image=x'\nTry \"srun --help\" for more information\n"),
        (
            "out-of-memory",
            "begins\nslurmstepd: error: Detected 1 oom-kill event(s) in StepId=372053.0. Some of your processes may have been "
            "killed by the cgroup out-of-memory handler.\nsrun: error: node0: task 0: Out Of Memory\n",
        ),
        (
            "out-of-memory",
            "begins\n0: slurmstepd-gpu2: error: StepId=4.0 exceeded memory limit (309690368 > 209715200), being killed\n"
            'bash: line 19:   158 Killed                  bash -c "$rank_command" bash "$@"\n',
        ),
        (
            "wrong-config",
            f"{TRACEBACK}FileNotFoundError: The passed configuration file `cluster.yaml` does not exist. Please\n",
        ),
    ],
)
def test_words_of_launchers_are_known(symptom: str, text: str) -> None:
    assert diagnose(log(0, text)) == [(symptom, [0])]


def test_words_of_a_general_symptom_yield_to_a_more_specific_one() -> None:
    memory = f"node0:1:2 [0] NCCL WARN Cuda failure 2 'out of memory'\n{TRACEBACK}ncclUnhandledCudaError: Call failed.\n"
    assert diagnose(log(0, memory), waiting_log(1)) == [("out-of-memory", [0])]
    ordinal = f"{TRACEBACK}RuntimeError: CUDA error: invalid device ordinal\n"
    assert diagnose(log(0, ordinal), waiting_log(1)) == [("gpu-shared", [0])]


def test_words_of_a_rank_that_lost_its_peer_over_nccl_make_it_a_victim() -> None:
    for at in (0.9, 1.5):  # whoever was seen to end first
        assert diagnose(log(0, REMOTE, at=at), log(1, MISTAKE)) == [("script-error", [1])]
    assert diagnose(log(0, REMOTE, 134, 1.5), log(1, "step 3\n", 137)) == [("rank-killed", [1])]
    assert diagnose(log(0, REMOTE), log(1, REMOTE)) == [("nccl-error", [0, 1])]  # nobody else failed: then it was the network


def test_words_of_a_watchdog_that_ends_its_rank_are_not_a_crash() -> None:
    stuck = log(1, "step 6\n", 143, 2.0, is_ended=True)
    assert diagnose(log(0, WATCHDOG.format(rank=0), 134), stuck) == [("silent-rank", [1])]
    assert diagnose(log(0, WATCHDOG.format(rank=0), 134), log(1, WATCHDOG.format(rank=1), 134)) == [("nccl-timeout", [0, 1])]


@pytest.mark.parametrize("text", ["", "cannot find a config: set MODEL=tiny\n"])
def test_words_of_a_rank_that_ended_by_itself_name_it_and_none_that_waited(text: str) -> None:
    silences = (Silence(node="node1", rank=1, seconds=6.3, doing="waiting"),)
    diagnoses = recognise(evidence(log(0, text, 3), log(1, "", 143, 9.0, is_ended=True), silences=silences))
    assert [(diagnosis.symptom, diagnosis.ranks) for diagnosis in diagnoses] == [("rank-exited", [0])]
    assert [quote.line for quote in diagnoses[0].seen] == [line for line in text.splitlines() if line]
    assert "signal 15 (SIGTERM)" in recognise(evidence(log(0, text, 143), waiting_log(1)))[0].title


def test_words_of_a_rank_that_needs_another_exercise_name_its_command() -> None:
    text = "no throughput to compute with: run 4.3 first (gpucourse run 4.3), or give one (--set tok_per_s=200)\n"
    assert [diagnosis.next for diagnosis in recognise(evidence(log(0, text, 1)))] == ["gpucourse run 4.3"]


def test_words_of_ranks_that_could_not_connect_name_them_alone() -> None:
    refusal = (
        f"{TRACEBACK}RuntimeError: Gloo connectFullMesh failed with [/gloo/transport/tcp/pair.cc:152] timed out connecting: "
        "SO_ERROR: Connection refused, remote=[127.0.0.1]:45300\n"
    )
    silences = (Silence(node="node1", rank=1, seconds=11, doing="waiting"),)
    trying = log(1, "", 143, 9.0, is_ended=True)
    assert diagnose(log(0, refusal), trying, silences=silences)[0] == ("wrong-interface", [0])
    assert diagnose(log(0, refusal, at=2.0), log(1, "gave up\n", 3)) == [("rank-exited", [1])]


def test_words_of_a_run_past_its_time_limit_come_before_a_silent_rank() -> None:
    silences = (Silence(node="node1", rank=1, seconds=300, doing="computing"),)
    logs = (log(0, "step 900\n", 143, is_ended=True), log(1, "", 143, is_ended=True))
    assert diagnose(*logs, state="timed_out", silences=silences) == [("time-limit", []), ("silent-rank", [1])]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (f"{TRACEBACK}    ^^^^\nmine.Trouble: very sad\n", "mine.Trouble", "very sad"),
        (f"{TRACEBACK}AssertionError\n", "AssertionError", ""),
        ('  File "t.py", line 3\n    x = = 2\n        ^\nSyntaxError: invalid syntax\n', "SyntaxError", "invalid syntax"),
        (f"[rank1]: {MISTAKE}Exception ignored in: <function f>\n{TRACEBACK}KeyError: 2\n", "ValueError", "bad label 11"),
        (f"{TRACEBACK}KeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\n{MISTAKE}",
         "ValueError", "bad label 11"),
    ],
)  # fmt: skip
def test_find_exception_finds_the_last_one_of_any_name(text: str, kind: str, message: str) -> None:
    exception = find_exception(blank_all_but_last_words("begins\n" + text, ended_itself=True))
    assert exception is not None
    assert exception[0] == kind
    assert ("begins\n" + text)[exception[1] :].removeprefix("[rank1]: ").startswith(f"{kind}{message and ': '}{message}\n")


def test_find_line_finds_the_line_of_the_script() -> None:
    frames = 'Traceback (most recent call last):\n  File "/w/train.py", line 12, in <module>\n    step()\n'
    library_frame = '  File "/v/lib/python3.11/site-packages/torch/nn.py", line 9, in forward\n'
    assert find_line('  File "/w/other.py", line 1\n' + frames + library_frame) == "train.py, line 12"
    assert find_line('  File "/w/t.py", line 3\n    x = = 2\n') == "t.py, line 3"
    assert find_line("nothing of that kind") == ""


def test_blank_all_but_last_words_keeps_the_places_of_the_text() -> None:
    text = "one\r\ntwo\rthree\u2028\n" + MISTAKE
    assert len(blank_all_but_last_words(text, ended_itself=True)) == len(text)
    assert blank_all_but_last_words(text, ended_itself=True).endswith(MISTAKE)


@pytest.mark.parametrize(
    ("level", "lines"),
    [
        ("error", f"[default1]:[rank1]: {MISTAKE}"),
        ("error", "rank 1: torch.OutOfMemoryError: CUDA\nERROR:root:x\n2026-01-01 12:00:00 ERROR x\na.py: error: x"),
        ("error", "E1128 23:05:20.381000 21778 torch/api.py:1002] x\nbash: line 1: foo: command not found\n  what():  x"),
        ("warning", "/x/y.py:3: UserWarning: x\nnode0:4:9 [0] misc/socket.cc:4 NCCL WARN x\n[W1121 09:42:31.9 socket.cpp:9] x"),
        ("info", "max_error: 1e-3\nrelative error 0.1\n0 errors, 0 warnings\n    RuntimeErrors are bad\nstep 7 loss 2.5"),
    ],
)
def test_read_finds_the_level_of_each_line(level: str, lines: str) -> None:
    reader = LevelReader()
    assert [reader.read(line) for line in lines.splitlines()] == [level] * len(lines.splitlines())
    assert reader.read("bye") == "info"
