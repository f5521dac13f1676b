"""Versions of learners' files that are right in their own way, or wrong in a way that has no name: what the judge says."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from gpucourse.judge.client import Judge, JudgeAnswer
from tests.parts import KERNELS, needs_module

EXERCISES = Path(__file__).parents[3] / "exercises"
FOUNDATIONS = "00-local-foundations"
COMMUNICATION = "03-parallel-computing"
GPU = "05-gpu-programming"
SCALE = "06-training-at-scale"
WITH_TORCH = {FOUNDATIONS, COMMUNICATION, GPU, SCALE}
HPC = "07-hpc-systems"
TRACING = "B-ebpf-tracing"
ONE = "{nvidia.com/gpu: 1}"
BOTH, ALIAS = f"requests: {ONE}\n        limits: {ONE}", f"requests: &it {ONE}\n        limits: *it"
RIGHTS = "SYS_PTRACE]}\n"
REPLICAS = "resources:\n          - name: nvidia.com/gpu\n            replicas: 3"
SPEC = "  name: chat\nspec:\n"
PIP = "RUN pip install --no-cache-dir torch==2.13.0 numpy"
COPY = "COPY hello_gpu.py"
BASE = "python:3.12-slim-bookworm"
ALL_PLACES = "return [placement[number] for number in range(len(names))]"
FROM_1 = "return [(placement[number][0] + 1, placement[number][1]) for number in range(len(names))]"
BEST_RING = "    return max(rings, key=lambda order: score(links, hops(order)))"
NEAREST = """    ring, left = [0], set(range(1, len(links)))
    while left:
        ring.append(max(left, key=lambda gpu: rank_link(links[ring[-1]][gpu])))
        left.remove(ring[-1])
    return ring"""
VERSIONS = {  # folder, file, the change to the solution, the verdict
    "tokenizers-is-no-secret": (HPC, "my_dockerfile.txt", PIP, "ENV TOKENIZERS_PARALLELISM=no\n" + PIP, True),
    "mounted-secret": (HPC, "my_dockerfile.txt", "RUN pip", "RUN --mount=type=secret,id=hf_token pip", True),
    "platform": (HPC, "my_dockerfile.txt", "FROM ", "FROM --platform=linux/amd64 ", True),
    "base-by-argument": (HPC, "my_dockerfile.txt", f"FROM {BASE}", f"ARG BASE={BASE}\nFROM ${{BASE}}", True),
    "entrypoint": (HPC, "my_dockerfile.txt", "CMD [", "ENTRYPOINT [", True),
    "run-in-two-lines": (HPC, "my_dockerfile.txt", "all --shm", "all \\\n#  --shm", True),
    "user-that-is-not-there": (HPC, "my_dockerfile.txt", "RUN useradd --create-home learner\n", "", False),
    "torch-in-quotes": (HPC, "my_dockerfile.txt", "torch==2.13.0", '"torch"', False),
    "pip-as-a-list": (HPC, "my_dockerfile.txt", PIP, 'RUN ["pip", "install", "torch"]', False),
    "command-in-a-comment": (HPC, "my_dockerfile.txt", "CMD [", "# CMD [", False),
    "python-by-its-path": (HPC, "my_definition.def", "exec python", "exec /opt/course/bin/python", True),
    "another-environment": (HPC, "my_definition.def", "PATH=/opt/course/bin:$PATH", "LC_ALL=C", False),
    "as-much-as-needed-refused": (HPC, "my_sharing.py", 'size["gib"] >= service', 'size["gib"] > service', False),
    "numbered-from-1": (HPC, "my_sharing.py", ALL_PLACES, FROM_1, False),
    "ring-without-a-number": (HPC, "my_topology.py", "return max(rings", "return [None, 1] or max(rings", False),
    "places-by-memory": (HPC, "my_design.py", "remaining[profiles[profile] :]", "remaining[48 // profile :]", False),
    "aliases-in-a-pod": (HPC, "my_pods.yaml", BOTH, ALIAS, True),
    "one-in-quotes": (HPC, "my_pods.yaml", f"requests: {ONE}", 'requests: {nvidia.com/gpu: "1"}', True),
    "two-shares": (HPC, "my_pods.yaml", BOTH, "limits: {nvidia.com/gpu: 2}", False),
    "host-ipc-for-mps": (HPC, "my_pods.yaml", SPEC, SPEC + "  hostIPC: true\n", False),
    "host-ipc-refused": (HPC, "my_pods.yaml", SPEC, SPEC + "  hostIPC: false\n", True),
    "way-without-resources": (HPC, "my_pods.yaml", "mps:\n        " + REPLICAS, "mps", False),
    "too-deep": (HPC, "my_pods.yaml", "kind: ConfigMap", "kind: " + "[" * 2000, False),
    "gpu-requested": (TRACING, "my_pod.yaml", RIGHTS, RIGHTS + f"      resources: {{requests: {ONE}}}\n", False),
    "no-gpu-by-number": (TRACING, "my_pod.yaml", RIGHTS, RIGHTS + "      resources: {limits: {nvidia.com/gpu: 0}}\n", True),
    "root-that-is-refused": (TRACING, "my_pod.yaml", "runAsUser: 0", "runAsUser: 0\n        runAsNonRoot: true", False),
    "power-of-the-next-size": (TRACING, "my_preload.c", "power(bytes)", "power(bytes) + 1", False),
    "fused-where-possible": (GPU, "my_loop.py", "lr=RATE)", "lr=RATE, fused=device.type == 'cpu')", True),
    "every-error-switches-off": (GPU, "my_server.py", "except RuntimeError", "except Exception", False),
    "tracer-that-prints": (TRACING, "my_preload.c", "  int code =", '  puts("cudaMalloc");\n  int code =', False),
}  # fmt: skip


CHUNKS = "chunks[(rank - step) % size], chunks[(rank - step - 1) % size]"
BEGUN_AGAIN = CHUNKS.replace("step", "step % (size - 1)")
GUARD, OLD_GUARD = "(y < columns && x < rows) out", "(y < rows && x < columns) out"
ATOMIC, SET = "atomicAdd(sum, value)", "*sum = value"
CLIPPED_TWICE, CLIPPED_ONCE = "fmaxf(-limit, fminf(left[i], limit))", "fminf(left[i], limit)"
AT_THE_ROOT = ("square.sqrt() + self.eps", "(square + self.eps).sqrt()")
ANY_ORDER = ("for name in reversed(order)", 'for name in ("dp", "tp", "pp")')
ONE_OF_TWO = ("group[1:] + group[:1], strict=True", "group[1:] + group[: len(group) > 2]")
YOUNG = "max(1, round(interval_s / step_s))"
ONE_BUFFER = (
    "        self.inputs[size].copy_(tokens)\n",
    "        if len(self.inputs.get(0, ())) < size:\n            self.inputs[0] = self.inputs[size]\n"
    "        self.inputs[0][:size].copy_(tokens)\n",
)
ALL_TOKENS, FIRST_TOKEN = "scores.flatten(0, 1), targets.flatten()", "scores[:, 0], targets[:, 0]"
CAUSES = {  # folder, file, the change to the solution, the way that is named, words of the verdict
    "second-half-with-own-chunk": (COMMUNICATION, "my_ring.py", CHUNKS, BEGUN_AGAIN, "unfinished-passed-on", "1 of 3 ranks"),
    "chunk": (COMMUNICATION, "my_ring.py", "tensor_split", "chunk", "error", "out of range. With elements = 3 it is right"),
    "guard-of-the-read": (GPU, "my_warps.cu", GUARD, OLD_GUARD, "other", "Which thread should write there?"),
    "sum-set-by-each-block": (GPU, "my_warps.cu", ATOMIC, SET, "other", "does it add with atomicAdd?"),
    "nearest-gpu-first": (HPC, "my_topology.py", BEST_RING, NEAREST, "nearest-first", "Compare whole rings"),
    "eps-under-the-root": (SCALE, "my_sharded.py", *AT_THE_ROOT, "other", ". With eps = 1e-12 it is right"),
    "one-buffer-that-grows": (GPU, "my_server.py", *ONE_BUFFER, "other-memory", "read memory that does not hold its tokens"),
    "any-fixed-order": (SCALE, "my_mesh.py", *ANY_ORDER, "order-ignored", "whatever `order` says"),
    "ring-of-two-once": (SCALE, "my_mesh.py", *ONE_OF_TWO, "ring-of-two", "in a ring of two ranks"),
    "always-1000-steps": (SCALE, "my_resume.py", YOUNG, "1000", "fixed", "1000 steps in all 5 cases"),
    "first-token-only": (FOUNDATIONS, "my_step.py", ALL_TOKENS, FIRST_TOKEN, "other", ". With tokens = 1 it is right"),
    "one-limit": (GPU, "my_warps.cu", CLIPPED_TWICE, CLIPPED_ONCE, "values", "With n = 1 it is right"),
}  # fmt: skip


def mark(name: str, folder: str, file: str) -> object:
    """Return the name of a version, with what its judge needs."""
    modules = [needs_module("torch")] if folder in WITH_TORCH else []
    kernels = [needs_module("triton", installed=KERNELS)] if file == "my_attention.py" else []
    lacks_emulator = sys.platform != "linux" or not shutil.which("g++")
    emulator = [pytest.mark.skipif(lacks_emulator, reason="the emulator needs g++ on Linux")] if file.endswith(".cu") else []
    slow_marks = [pytest.mark.slow] if folder in WITH_TORCH else []
    return pytest.param(name, marks=modules + kernels + emulator + slow_marks)


@pytest.mark.parametrize("name", [mark(name, *version[:2]) for name, version in VERSIONS.items()])
def test_version_is_judged_by_what_it_does(judge: Judge, tmp_path: Path, name: str) -> None:
    folder, file, old, new, is_right = VERSIONS[name]
    answer = judge_version(judge, tmp_path, folder, file, old, new)
    assert answer.word == ("passed" if is_right else "failed"), answer.says


@pytest.mark.parametrize("name", [mark(name, *version[:2]) for name, version in CAUSES.items()])
def test_wrong_version_gets_its_own_explanation(judge: Judge, tmp_path: Path, name: str) -> None:
    *version, way, words = CAUSES[name]
    answer = judge_version(judge, tmp_path, *version)
    assert (answer.word, answer.way) == ("failed", way), answer.says
    assert words in answer.says


def judge_version(judge: Judge, tmp_path: Path, folder: str, file: str, old: str, new: str) -> JudgeAnswer:
    """Return the verdict on the solution with one change."""
    solution = (EXERCISES / folder / "solutions" / file).read_text(encoding="utf-8")
    assert old in solution
    version = tmp_path / file
    version.write_text(solution.replace(old, new, 1), encoding="utf-8")
    places = (EXERCISES / folder, EXERCISES / "shared")
    judge_file = EXERCISES / folder / "judges" / f"{version.stem}.py"
    return judge.judge(judge_file, version, torch=folder in WITH_TORCH, limit_s=20.0, path=places)
