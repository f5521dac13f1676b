"""The coach on logs of real torch and gloo, and on documented messages of software that needs GPUs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpucourse import coach
from gpucourse.coach.evidence import Evidence, Log
from gpucourse.coach.recognise import recognise
from gpucourse.coach.symptoms import SYMPTOMS
from gpucourse.model.record import NodeExit

CASES = sorted((Path(__file__).parents[2] / "data" / "coach").glob("*.json"))


def evidence(*logs: Log, state: str = "failed", world: int = 2, **options: Any) -> Evidence:
    ranks_by_node: dict[str, tuple[int, ...]] = {f"node{rank}": (rank,) for rank in range(world)}
    return Evidence(
        exercise="3.2", module="3", run="otter", state=state, mode="local", planned=ranks_by_node, logs=logs, **options
    )


def log(rank: int, text: str, code: int | None = 1, at: float = 1.0, *, is_ended: bool = False) -> Log:
    return Log(node=f"node{rank}", rank=rank, text=text, code=code, at=at, ended_by_us=is_ended)


def read_case(path: Path) -> tuple[Evidence, str, list[int]]:
    case = json.loads(path.read_text(encoding="utf-8"))
    exits = {end_of_process["rank"]: end_of_process for end_of_process in case["rank_exits"]}
    nodes = tuple(NodeExit(**end_of_process) for end_of_process in case["node_exits"])
    logs = []
    for name, text in case["logs"].items():
        node, _, role = name.partition("-")
        rank = None if role == "launcher" else int(role.removeprefix("rank"))
        end = exits.get(rank, {}) if rank is not None else {"code": 1}
        code = end.get("code")
        logs.append(Log(node=node, rank=rank, text=text, code=code, at=end.get("at"), ended_by_us=code == 143))
    return evidence(*logs, state=case["state"], node_exits=nodes), case["symptom"], case["ranks"]


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_recognise_names_the_right_rank_of_a_captured_failure(path: Path) -> None:
    symptoms, symptom, ranks = read_case(path)
    diagnoses = recognise(symptoms)
    assert [diagnosis.symptom for diagnosis in diagnoses] == [symptom], diagnoses
    assert diagnoses[0].ranks == ranks
    assert diagnoses[0].why
    assert diagnoses[0].next
    assert "{" not in diagnoses[0].title + diagnoses[0].why + diagnoses[0].next
    for quote in diagnoses[0].seen:
        whole = next(log for log in symptoms.logs if (log.node, log.rank) == (quote.node, quote.rank)).text
        assert quote.line in whole


DOCUMENTED = {  # the words as NCCL, CUDA and torch print them on GPUs
    "wrong-interface": "node1:412:412 [0] NCCL INFO Bootstrap : no socket interface found\n"
    "torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1970, internal error - please report this "
    "issue",
    "nccl-error": "torch.distributed.DistBackendError: NCCL error in: "
    "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, "
    "unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5\n"
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
    "gpu-shared": "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n"
    "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1e0",
    "driver": "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
    "no-gpu": "RuntimeError: No CUDA GPUs are available",
    "disk-full": "OSError: [Errno 28] No space left on device: 'x.pt'",
    "clock-skew": "make: warning:  Clock skew detected.  Your build may be incomplete.",
    "wrong-arguments": "usage: multinode.py [-h] total_epochs save_every\n"
    "multinode.py: error: the following arguments are required: total_epochs, save_every",
    "rank-mismatch": "ValueError: Invalid rank 3, rank should be in the interval [0, 1]",
    "name-unknown": "socket.gaierror: [Errno -2] Name or service not known",
    "no-internet": "socket.gaierror: [Errno -3] Temporary failure in name resolution\n"
    "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.",
    "server-refuses": "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>",
    "server-not-trusted": "urllib.error.URLError: <urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: "
    "unable to get local issuer certificate (_ssl.c:1006)>",
    "server-silent": "urllib.error.URLError: <urlopen error timed out>",
    "library-mismatch": "RuntimeError: operator torchvision::nms does not exist",
    "not-in-package": 'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n    from .data import load\n'
    "ImportError: attempted relative import with no known parent package\n",
    "no-keyboard": "Traceback (most recent call last):\n  File \"ask.py\", line 1, in <module>\n    input('lr? ')\n"
    "EOFError: EOF when reading a line",
    "wrong-config": "Could not override 'optimizer.lr'.\nKey 'lr' is not in struct\n    full_key: optimizer.lr",
}


@pytest.mark.parametrize("symptom", DOCUMENTED)
def test_recognise_knows_the_documented_words(symptom: str) -> None:
    diagnoses = recognise(evidence(log(0, "training\nConnection closed by peer\n", at=2.0), log(1, DOCUMENTED[symptom] + "\n")))
    assert symptom in [diagnosis.symptom for diagnosis in diagnoses]
    assert diagnoses[0].ranks == [1]


@pytest.mark.parametrize(
    ("symptom", "line"),
    [  # lines that scripts from elsewhere left on nodes without a GPU
        ("no-gpu", "AssertionError: Torch not compiled with CUDA enabled"),
        ("no-gpu", "RuntimeError: Cannot access accelerator device when none is available."),  # set_device_index, pin_memory
        ("no-gpu", "RuntimeError: Tried to instantiate dummy base class Event"),
        ("no-gpu", "RuntimeError: torch.cuda.Stream requires CUDA support"),
        (
            "no-gpu",
            "Traceback (most recent call last):\n"
            '  File "/w/train.py", line 6, in <module>\n'
            "    device = torch.accelerator.current_accelerator().type\n"
            "             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
            "AttributeError: 'NoneType' object has no attribute 'type'",
        ),
        ("no-gpu", "RuntimeError: Expected one of cpu, cuda, meta device type at start of device string: None"),
        (
            "no-gpu",
            "Traceback (most recent call last):\n"
            '  File "/env/torch/distributed/distributed_c10d.py", line 1511, in get_default_backend_for_device\n'
            "    device_str = torch.device(device).type\n"
            "TypeError: device() received an invalid combination of arguments - got (NoneType), but expected one of:",
        ),
        (
            "no-gpu",
            "Traceback (most recent call last):\n"
            '  File "/w/train.py", line 9, in <module>\n'
            "    local_rank = rank % torch.cuda.device_count()\n"
            "ZeroDivisionError: integer modulo by zero",
        ),
        ("script-error", "AttributeError: 'NoneType' object has no attribute 'type'"),
        (
            "command-missing",
            "Traceback (most recent call last):\n"
            '  File "/w/train.py", line 3, in <module>\n'
            "    subprocess.run(['ffmpeg', '-version'])\n"
            '  File "/usr/lib/python3.11/subprocess.py", line 1955, in _execute_child\n'
            "    raise child_exception_type(errno_num, err_msg, err_filename)\n"
            "FileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'",
        ),
        (
            "server-refuses",
            "requests.exceptions.ConnectionError: HTTPConnectionPool(host='localhost', port=8000): Max retries exceeded with "
            "url: /v1 (Caused by NewConnectionError(\"HTTPConnection(host='localhost', port=8000): Failed to establish a new "
            'connection: [Errno 111] Connection refused"))',
        ),
        ("server-silent", "urllib.error.URLError: <urlopen error [Errno 110] Connection timed out>"),
        ("no-internet", "urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>"),
        ("no-internet", "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>"),
        ("script-error", "urllib.error.URLError: <urlopen error unknown url type: htps>"),
        ("script-error", "httpx.ConnectError: All connection attempts failed"),
        (
            "script-error",
            'Traceback (most recent call last):\n  File "/w/train.py", line 3, in <module>\n    run(["false"], check=True)\n'
            "subprocess.CalledProcessError: Command '['false']' returned non-zero exit status 1.",
        ),
        (
            "wrong-arguments",
            "Traceback (most recent call last):\n"
            '  File "/env/accelerate/commands/launch.py", line 1205, in _validate_launch_command\n'
            "    raise ValueError(\nValueError: You can only use one of `--cpu`, `--multi_gpu` at a time.",
        ),
        ("rank-mismatch", "RuntimeError: [enforce fail at /gloo/context.cc:23] rank < size. 2 vs 2"),
        (
            "no-internet",
            "urllib3.exceptions.MaxRetryError: HTTPSConnectionPool(host='example.com', port=443): Max retries exceeded "
            "with url: /train.txt (Caused by ProxyError('Unable to connect to proxy'))",
        ),
        (
            "variable-missing",
            "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, "
            "but not set",
        ),
    ],
)
def test_recognise_knows_other_wordings(symptom: str, line: str) -> None:
    assert [diagnosis.symptom for diagnosis in recognise(evidence(log(0, line + "\n"), log(1, line + "\n")))] == [symptom]


def test_recognise_does_not_mistake_options_of_torchrun_for_arguments_of_the_script() -> None:
    message = "usage: run.py [-h] [--nnodes NNODES]\n   training_script ...\nrun.py: error: unrecognized arguments: --foo=1\n"
    (diagnosis,) = recognise(evidence(replace(log(0, message, code=2), rank=None)))
    assert (diagnosis.symptom, diagnosis.title) == ("wrong-arguments", "torchrun does not accept these options")
    assert diagnosis.next.startswith("correct what comes after --torchrun")


def test_recognise_explains_a_run_that_slurm_placed_by_its_words() -> None:
    case = Evidence(
        exercise="2.3", module="2", run="otter", state="failed", mode="local", planned={},
        logs=(log(0, "CUDA out of memory\n", code=None), log(1, "fine\n", code=None)),
    )  # fmt: skip
    assert [diagnosis.symptom for diagnosis in recognise(case)] == ["out-of-memory"]
    assert recognise(replace(case, logs=(log(0, "fine\n", code=None),))) == ()


def test_recognise_of_a_good_or_cancelled_run_is_empty() -> None:
    error_log = log(0, "CUDA out of memory")
    assert recognise(evidence(error_log, state="succeeded")) == ()
    assert recognise(evidence(error_log, state="cancelled")) == ()


def test_recognise_names_clocks_that_differ_beside_the_cause() -> None:
    diagnoses = recognise(evidence(log(1, "ValueError: x\n"), skew_s={"node0": 0.1, "node1": -40.0}))
    assert [diagnosis.symptom for diagnosis in diagnoses] == ["script-error", "clock-skew"]
    assert "node1 is 40.0 s behind" in diagnoses[1].why


def test_recognise_names_a_missing_folder_of_configurations() -> None:
    output = (
        "Primary config directory not found.\nCheck that the config directory '/home/me/conf' exists and readable\n\n"
        "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
    )
    (diagnosis,) = recognise(evidence(log(0, output), world=1))
    assert diagnosis.symptom == "wrong-config"
    assert "looks for its configurations in /home/me/conf, which is not on node0" in diagnosis.why
    assert diagnosis.next.startswith("--with FOLDER uploads")


def test_recognise_keeps_braces_and_odd_bytes_of_a_log() -> None:
    diagnoses = recognise(evidence(log(1, "ModuleNotFoundError: No module named '{rank}{0}'\n")))
    assert "{rank}{0}" in diagnoses[0].why
    assert [
        diagnosis.symptom for diagnosis in recognise(evidence(log(0, "", code=143, is_ended=True), log(1, "\x00\ufffd" * 5000)))
    ] == ["rank-exited"]


def test_recognise_knows_every_symptom_of_the_page_on_troubleshooting() -> None:
    page = (Path(__file__).parents[3] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(coach.__file__).parent.glob("*.py"))
    words = {symptom.word for symptom in SYMPTOMS} | set(re.findall(r'symptom="([a-z-]+)"', sources))
    assert len(words) > 30
    assert [word for word in sorted(words) if f"`{word}`" not in page] == []


def test_recognise_does_not_mistake_srun_on_a_failed_script_for_a_wrong_argument() -> None:
    srun = "srun: error: node2: task 1: Exited with exit code 1\nsrun: error: node1: task 0: Terminated\n"
    victim = "rank 0 is here\nslurmstepd-node0: error: *** STEP 7.0 ON node0 CANCELLED AT 2026-11-21T10:24:14 ***\n"
    traceback = 'Traceback (most recent call last):\n  File "own.py", line 4, in <module>\nValueError: the fan is loud\n'
    launcher = Log(node="node0", rank=None, text=srun, code=143)
    [diagnoses] = recognise(evidence(launcher, log(0, victim, code=143, at=2.0), log(1, traceback)))
    assert (diagnoses.symptom, diagnoses.ranks) == ("script-error", [1])
