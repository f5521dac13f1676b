"""The exercises of module 1 as a learner runs them, with real processes, judged by the checks of their own manifest.

Each healthy run passes every check that a CPU can answer. Each fault, injected into a copy of a file, is found by the check
that is there for it.
"""

from __future__ import annotations

import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts import needs_module
from tests.system.cli import Learner
from tests.system.exercising import (
    FOLDERS,
    Finished,
    by_command_line,
    check_plots_and_tables,
    environment,
    flags,
    lay_out,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    on_cpu,
    start,
    wait,
    with_faults,
    words,
)
from tests.waiting import until

pytestmark = [pytest.mark.system, needs_torch]

ANSWERS = {"max_tokens": "20", "prompt": "def forward(self, x):"}
TINY = {"small": "64", "size": "256", "repeats": "3"}


# --- 1.1 ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def basic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Somebody with module 1 up, in a folder whose name has a space and quotes in it."""
    learner = Learner(tmp_path_factory.mktemp("basic") / 'it\'s my "work" space')
    learner.takes_ports()
    with learner.leaves_nothing():
        learner.types("deploy", "1")
        yield learner


@pytest.mark.slow
def test_two_products_are_right_and_timed(basic: Learner, tmp_path: Path) -> None:
    hello, folder = by_command_line(basic, "1.1", **TINY)
    assert (folder / "screen.svg").is_file(), "the captured screen"
    assert list_unanswered(hello) == {}
    assert on_cpu(hello) == {"copies-cost", "first-call", "grows"}
    values = hello.metrics
    assert [row["what"] for row in values["rows"]] == 2 * [
        "first call", "warm", "warm, with copies (pageable memory)", "warm",
    ]  # fmt: skip
    assert [row["bytes"] for row in values["allocations"]] == [3 * 64 * 64 * 4, 3 * 256 * 256 * 4]
    for row in values["rows"]:
        assert row["gflop_per_s"] == pytest.approx(2 * row["size"] ** 3 / row["median_ms"] / 1e6, rel=1e-3)
        assert row["percent_of_peak"] is None, "no data sheet is behind this computer's processor"
    assert min(row["copies_ms"] for row in values["speedups"]) > 0, "timed alone, and not as a difference of two times"
    assert values["slow_time_ratio"] > 1
    assert (values["mode"], values["cuda"]) == ("local", None)
    assert "(local mode)" in hello.output
    check_plots_and_tables(hello, tmp_path)


@pytest.mark.slow
def test_faults_in_hello_are_found(tmp_path: Path) -> None:
    wrong = ("hello_gpu.py", "cold = bench.time_each(lambda: torch.mm(x, y,", "cold = bench.time_each(lambda: torch.mm(x, x,")
    more = ("hello_gpu.py", "held = [x, y, product]", "held = [x, y, product, a.clone()]")
    once = ("hello_gpu.py", "at_least=args.repeats, flush=flush)", "flush=flush)[:1]")
    run = with_faults("1.1", tmp_path / "work", wrong, more, once, **TINY)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"right", "allocated", "warm-calls"}


@pytest.mark.slow
def test_faster_than_any_processor_is_refused(tmp_path: Path) -> None:
    fault = ("hello_gpu.py", "    tflops = gpus.matmul_tflops(n, median)", "    tflops = gpus.matmul_tflops(n, 1e-9)")
    run = with_faults("1.1", tmp_path / "work", fault, **TINY)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"possible"}
    assert all(row["gflop_per_s"] is None for row in run.metrics["rows"]), "a refused number is not shown"
    assert "refused: 64: CPU" in run.output


@pytest.mark.slow
def test_sizes_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    run = with_faults("1.1", tmp_path / "work", small="300", size="200")
    assert run.code == 2
    assert "--small < --size" in run.output
    assert "Traceback" not in run.output


# --- 1.2 ---------------------------------------------------------------------------------------------------------------

needs_transformers = needs_module("transformers")


@needs_transformers
@pytest.mark.slow
def test_an_engine_answers_and_its_times_are_the_clients(basic: Learner, tmp_path: Path) -> None:
    run, folder = by_command_line(basic, "1.2", **ANSWERS)
    assert not (folder / "outputs/node0/tiny").exists(), "14 MB of weights need not come home"
    assert list_unanswered(run) == {}
    assert run.verdict().verdict == "passed"
    values = run.metrics
    assert values["engine"] == "transformers"
    assert [(row["tokens"], row["requests"]) for row in values["rows"]] == [(20, 1), (20, 5), (10, 5)]
    for row in values["rows"]:
        assert row["ttft_ms"] < row["e2e_ms"]
        assert row["tok_per_s"] < row["ceiling_tok_per_s"]
    assert (folder / "outputs/node0/generated.txt").read_text(encoding="utf-8").startswith("def forward(self, x):")
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
@needs_transformers
def test_faults_of_the_client_are_found(tmp_path: Path) -> None:
    more_tokens = ("first_inference.py", "    speed = tokens / e2e\n", "    speed = 1e6 * tokens / e2e\n")
    ends_early = ("completions.py", '"max_tokens": max_tokens,', '"max_tokens": max_tokens - 1,')
    late = ("completions.py", "    ended = time.perf_counter()\n", "    first = ended = time.perf_counter()\n")
    parent = ("first_inference.py", "    memory = engine.memory_bytes()\n", "    memory = 0\n")
    run = with_faults("1.2", tmp_path / "work", more_tokens, ends_early, late, parent, max_tokens="12")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"possible", "every-token", "streamed", "whose-memory"}
    assert all(row["tok_per_s"] is None for row in run.metrics["rows"]), "a refused figure is not shown"


@pytest.mark.slow
@needs_transformers
def test_an_engine_that_does_not_come_up_is_named_with_its_last_words(tmp_path: Path) -> None:
    broken = ("serve.py", "import language_models\n", "raise SystemExit('no room for the cache')\n")
    run = with_faults("1.2", tmp_path / "work", broken, model="gpt2")  # that no tiny one is made first
    assert run.code == 1
    assert "the engine ended with code 1" in run.output
    assert "no room for the cache" in run.output
    assert "the hub" not in run.output, "the network is not to blame"
    assert "Traceback" not in run.output


@pytest.mark.slow
@needs_transformers
def test_a_model_that_cannot_be_downloaded_says_what_to_type(tmp_path: Path) -> None:
    said = "We couldn't connect to 'https://hub.invalid' to load the files, and couldn't find them in the cached files."
    no_network = ("serve.py", "import language_models\n", f'raise OSError("{said}")\n')
    run = with_faults("1.2", tmp_path / "work", no_network, model="gpt2")
    assert run.code == 1
    assert "gpt2 has to be downloaded (openai-community/gpt2), and the hub could not be reached" in run.output
    assert "--set model=tiny" in run.output


@pytest.mark.slow
@needs_transformers
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGTERM, id="asked to end"),
        pytest.param(signal.SIGKILL, id="killed"),
    ],
)
def test_an_engine_ends_with_its_script(how: signal.Signals, tmp_path: Path) -> None:
    """Left behind, it would keep the GPU of the next exercise."""
    exercise, script = lay_out("1.2", tmp_path / "work")
    env = environment(script.parent) | {"TMPDIR": str(tmp_path)}  # whoever is killed tidies nothing up
    process = start([sys.executable, script.name, *flags(exercise, max_tokens="512")], script.parent, env)
    log = script.parent / "engine.log"
    port = until(lambda: log.is_file() and re.search(r"at port (\d+)", log.read_text(encoding="utf-8")))
    process.send_signal(how)
    wait(process)
    until(lambda: not answers(int(port[1])))


def answers(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
def test_vllm_without_a_gpu_is_refused_with_a_sentence(tmp_path: Path) -> None:
    run = with_faults("1.2", tmp_path / "work", engine="vllm")
    assert run.code == 1
    assert "vLLM needs a GPU" in run.output
    assert "Traceback" not in run.output


# --- 1.3 ---------------------------------------------------------------------------------------------------------------

BRIEFLY = {"with": "1.1", "seconds": "0.4", "hz": "20"}
needs_psutil = needs_module("psutil")


@pytest.mark.slow
@needs_psutil
def test_loads_and_another_exercise_are_recorded(basic: Learner, tmp_path: Path) -> None:
    run, home = by_command_line(basic, "1.3", None, **BRIEFLY)
    folder = home / "outputs/node0"
    assert set(list_unanswered(run)) <= {"on-time", "every-load"}, "how often it looks is the busy computer's choice"
    assert on_cpu(run) == {"looks-busy"}
    values = run.metrics
    assert [row["phase"] for row in values["phases"]] == ["idle", "copying", "arithmetic", "busywork", "exercise 1.1"]
    assert (values["source"], "no GPU" in values["watched_device"]) == ("cpu", True)
    assert all(sample["power_w"] is None for sample in values["samples"]), "no processor's power passes for a GPU's"
    times = [sample["at_s"] for sample in values["samples"]]
    assert times == sorted(times)
    assert 0 <= values["watched"]["utilisation_min_percent"] <= values["watched"]["utilisation_max_percent"] <= 100
    assert (folder / "watched-1.1" / "metrics.json").is_file(), "the watched exercise keeps its own record"
    assert len((folder / "samples.csv").read_text(encoding="utf-8").splitlines()) == len(values["samples"]) + 1
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
@needs_psutil
def test_the_watched_exercise_gets_its_settings(tmp_path: Path) -> None:
    """It would else download gpt2 wherever there is a GPU."""
    said = "sys.exit(print(args.engine, args.model, args.max_tokens))\n"
    told = ("first_inference.py", "longest = MODELS[args.model].longest\n", said)
    asked = {"engine": "transformers", "model": "opt-1.3b", "max_tokens": "7"}
    run = with_faults("1.3", tmp_path / "work", told, **{**BRIEFLY, "with": "1.2"}, **asked)
    assert run.code == 0, run.output
    assert "transformers opt-1.3b 7" in run.output
    assert run.metrics["model"] == "opt-1.3b"


@pytest.mark.slow
@needs_psutil
def test_faults_of_a_recording_are_found(tmp_path: Path) -> None:
    slow = (
        "telemetry.py",
        "phase, at = self.phase, self.seconds\n",
        "phase, at = self.phase, (time.sleep(0.6), self.seconds)[1]\n",
    )
    passed_off = ("telemetry.py", '            source="cpu",\n', '            source="nvml",\n')
    too_much = ("gpu_monitoring.py", "work.operations / work.seconds / 1e12\n", "1e3 * work.operations / work.seconds / 1e12\n")
    computes = (
        "loads.py",
        "    return Work(time.perf_counter() - begun)\n",
        "    return Work(time.perf_counter() - begun, 1e9)\n",
    )
    breaks = ("hello_gpu.py", "device, dtype, cores = bench.here()", "device, dtype, cores = bench.nowhere()")
    run = with_faults("1.3", tmp_path / "work", slow, passed_off, too_much, computes, breaks, **BRIEFLY)
    assert run.code == 1, "a run whose watched exercise failed has failed"
    assert list_failed_checks(run) == {"on-time", "labelled", "possible", "busy-without-work", "other-ran", "every-load"}


# --- 1.4 ---------------------------------------------------------------------------------------------------------------

SMALL = {"size": "1000", "budget_mib": "64"}
SOLUTION = FOLDERS.exercises / "01-basic-gpu" / "solutions" / "my_fix.py"
UNWRITTEN = "not_measured: not written yet: sums_of_squares in my_fix.py"
UNFINISHED = "not_measured: it did not reach the end"
OPEN = {"fix-runs": UNWRITTEN, "fix-fits": UNWRITTEN, "fix-whole": UNFINISHED, "fix-right": UNFINISHED}


def with_fix(folder: Path, fix: str, *changes: tuple[str, str, str]) -> Finished:
    """1.4 with another text in my_fix.py."""
    healthy = (FOLDERS.exercises / "01-basic-gpu" / "my_fix.py").read_text(encoding="utf-8")
    return with_faults("1.4", folder, ("my_fix.py", healthy, fix), *changes, **SMALL)


def test_as_delivered_the_fix_is_open_and_everything_else_holds(tmp_path: Path) -> None:
    run = with_faults("1.4", tmp_path / "work", **SMALL)
    assert run.code == 0, run.output
    assert words(run.verdict()) == OPEN
    assert run.metrics["plain_out_of_memory"], "the plain way is shown"
    first = run.metrics["timeline"][0]
    assert (first["allocated_mib"], first["reserved_mib"], first["driver_mib"]) == (0, 0, 16), (
        "only the driver knows the context"
    )
    assert run.metrics["capacity_bytes"] // run.metrics["tensor_bytes"] > run.metrics["steps_that_fitted"], "total is not free"


@pytest.mark.slow
def test_a_learner_repairs_their_own_copy_and_passes(basic: Learner, tmp_path: Path) -> None:
    mine = basic.workspace / "exercises" / "01-basic-gpu" / "my_fix.py"
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text(SOLUTION.read_text(encoding="utf-8"), encoding="utf-8")
    run, home = by_command_line(basic, "1.4", **SMALL)
    assert (home / "outputs" / "node0" / "my_fix.py").read_bytes() == SOLUTION.read_bytes(), "what was judged came home"
    assert words(run.verdict()) == {}
    values = run.metrics
    assert values["fix_peak_bytes"] <= values["capacity_bytes"] < 4 * 1024 * values["fix_rows"]
    assert values["steps_that_fitted"] == (64 - 16) * 2**20 // (4 * 1000 * 1000 + 384) == 12
    assert values["held_by_error_bytes"] > 0, "the caught error held what the frames held"
    assert "(local mode)" in run.output
    check_plots_and_tables(run, tmp_path)


HEAD = "import torch\n\n\ndef sums_of_squares(load, rows):\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "failed_checks"),
    [
        ("    return load(0, 4096).square().sum(dim=0)", {"fix-whole", "fix-right"}),
        ("    return 1 / 0", {"fix-runs"}),
    ],
    ids=["a smaller table", "another error"],
)
def test_fixes_that_only_look_like_one_are_found(body: str, failed_checks: set[str], tmp_path: Path) -> None:
    run = with_fix(tmp_path / "work", f"{HEAD}{body}\n")
    assert run.code == 0, run.output
    assert list_failed_checks(run) == failed_checks


@pytest.mark.slow
def test_faults_of_memory_management_are_found(tmp_path: Path) -> None:
    emptied = ("memory_management.py", '    note("both deleted")\n', '    memory.empty_cache()\n    note("both deleted")\n')
    held = ("memory_management.py", "    del first, second\n", "    del second\n")
    run = with_fix(tmp_path / "work", SOLUTION.read_text(encoding="utf-8"), emptied, held)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"cache-keeps", "cache-emptied", "nothing-left"}


@pytest.mark.slow
def test_memory_that_lasts_is_no_out_of_memory(tmp_path: Path) -> None:
    run = with_faults("1.4", tmp_path / "work", **SMALL, steps="3")
    assert run.code == 0, run.output
    assert "ran-out" in list_failed_checks(run)
    assert words(run.verdict())["same-error"] == "not_measured: memory did not run out"
