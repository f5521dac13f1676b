"""Versions of learners' files that are right in their own way, or wrong in a way that has no name: what the judge says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.judge.client import Judge

EXERCISES = Path(__file__).parents[3] / "exercises"
HPC = "07-hpc-systems"
TRACING = "B-ebpf-tracing"
ONE = "{nvidia.com/gpu: 1}"
BOTH, ALIAS = f"requests: {ONE}\n        limits: {ONE}", f"requests: &it {ONE}\n        limits: *it"
RIGHTS = "SYS_PTRACE]}\n"
REPLICAS = "resources:\n          - name: nvidia.com/gpu\n            replicas: 3"
PIP = "RUN pip install --no-cache-dir torch==2.13.0 numpy"
COPY = "COPY hello_gpu.py"
BASE = "python:3.12-slim-bookworm"
ALL_PLACES = "return [chosen[number] for number in range(len(names))]"
FROM_1 = "return [(chosen[number][0] + 1, chosen[number][1]) for number in range(len(names))]"
VERSIONS = {  # folder, file, the change to the solution, the verdict
    "tokenizers-is-no-secret": (HPC, "my_dockerfile.txt", PIP, "ENV TOKENIZERS_PARALLELISM=no\n" + PIP, True),
    "tokenizers-by-pip": (HPC, "my_dockerfile.txt", PIP, PIP + " tokenizers==0.22", True),
    "mounted-secret": (HPC, "my_dockerfile.txt", "RUN pip", "RUN --mount=type=secret,id=hf_token pip", True),
    "two-stages": (HPC, "my_dockerfile.txt", "bookworm\n", "bookworm AS base\nFROM base\n", True),
    "platform": (HPC, "my_dockerfile.txt", "FROM ", "FROM --platform=linux/amd64 ", True),
    "base-by-argument": (HPC, "my_dockerfile.txt", f"FROM {BASE}", f"ARG BASE={BASE}\nFROM ${{BASE}}", True),
    "entrypoint": (HPC, "my_dockerfile.txt", "CMD [", "ENTRYPOINT [", True),
    "run-in-two-lines": (HPC, "my_dockerfile.txt", "all --shm", "all \\\n#  --shm", True),
    "user-that-is-not-there": (HPC, "my_dockerfile.txt", "RUN useradd --create-home learner\n", "", False),
    "user-of-a-stage-before": (HPC, "my_dockerfile.txt", "USER learner\n", f"USER learner\nFROM {BASE}\n", False),
    "torch-in-quotes": (HPC, "my_dockerfile.txt", "torch==2.13.0", '"torch"', False),
    "torch-from-2-on": (HPC, "my_dockerfile.txt", "torch==2.13.0", "'torch>=2.0'", False),
    "pip-as-a-list": (HPC, "my_dockerfile.txt", PIP, 'RUN ["pip", "install", "torch"]', False),
    "copy-of-all": (HPC, "my_dockerfile.txt", COPY, "COPY . /course/\n" + COPY, False),
    "command-in-a-comment": (HPC, "my_dockerfile.txt", "CMD [", "# CMD [", False),
    "cuda-with-a-digest": (HPC, "my_dockerfile.txt", BASE, "nvidia/cuda:13.2.0-base@sha256:1f", False),
    "line-of-docker-run-gone": (HPC, "my_dockerfile.txt", "docker run", "start", False),
    "python-by-its-path": (HPC, "my_definition.def", "exec python", "exec /opt/course/bin/python", True),
    "another-environment": (HPC, "my_definition.def", "PATH=/opt/course/bin:$PATH", "LC_ALL=C", False),
    "pip-in-two-lines": (HPC, "my_definition.def", "install torch==2.13.0", "install \\\n torch", False),
    "half-is-not-more-than-half": (HPC, "my_sharing.py", '> card["gib"] / 2', '>= card["gib"] / 2', False),
    "as-much-as-needed-refused": (HPC, "my_sharing.py", 'size["gib"] >= service', 'size["gib"] > service', False),
    "numbered-from-1": (HPC, "my_sharing.py", ALL_PLACES, FROM_1, False),
    "no-number": (HPC, "my_sharing.py", ALL_PLACES, 'return [(float("inf"), 0)] * len(names)', False),
    "node-after-sys": (HPC, "my_topology.py", '"NODE", "SYS"', '"SYS", "NODE"', False),
    "ring-without-a-number": (HPC, "my_topology.py", "return max(rings", "return [None, 1] or max(rings", False),
    "places-by-memory": (HPC, "my_design.py", "left[profiles[profile] :]", "left[48 // profile :]", False),
    "targets-rounded": (HPC, "my_design.py", "count = math.ceil(", "count = round(", False),
    "always-one-more": (HPC, "my_design.py", "lower = math.ceil(nodes / down)", "lower = nodes // down + 1", False),
    "aliases-in-a-pod": (HPC, "my_pods.yaml", BOTH, ALIAS, True),
    "one-in-quotes": (HPC, "my_pods.yaml", f"requests: {ONE}", 'requests: {nvidia.com/gpu: "1"}', True),
    "time-slicing-for-mps": (HPC, "my_pods.yaml", "mps:", "timeSlicing:", False),
    "two-shares": (HPC, "my_pods.yaml", BOTH, "limits: {nvidia.com/gpu: 2}", False),
    "host-ipc-as-text": (HPC, "my_pods.yaml", "hostIPC: true", 'hostIPC: "true"', False),
    "resources-as-text": (HPC, "my_pods.yaml", REPLICAS, "resources: nvidia.com/gpu", False),
    "way-without-resources": (HPC, "my_pods.yaml", "mps:\n        " + REPLICAS, "mps", False),
    "too-deep": (HPC, "my_pods.yaml", "kind: ConfigMap", "kind: " + "[" * 2000, False),
    "gpu-requested": (TRACING, "my_pod.yaml", RIGHTS, RIGHTS + f"      resources: {{requests: {ONE}}}\n", False),
    "no-gpu-by-number": (TRACING, "my_pod.yaml", RIGHTS, RIGHTS + "      resources: {limits: {nvidia.com/gpu: 0}}\n", True),
    "usual-rights-kept": (TRACING, "my_pod.yaml", "drop: [ALL], ", "", False),
    "root-that-is-refused": (TRACING, "my_pod.yaml", "runAsUser: 0", "runAsUser: 0\n        runAsNonRoot: true", False),
    "power-of-the-next-size": (TRACING, "my_preload.c", "power(bytes)", "power(bytes) + 1", False),
    "tracer-that-prints": (TRACING, "my_preload.c", "  int code =", '  puts("cudaMalloc");\n  int code =', False),
}  # fmt: skip


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


@pytest.mark.parametrize("name", VERSIONS)
def test_a_version_is_judged_by_what_it_does(judge: Judge, tmp_path: Path, name: str) -> None:
    folder, file, old, new, right = VERSIONS[name]
    solution = (EXERCISES / folder / "solutions" / file).read_text(encoding="utf-8")
    assert old in solution
    version = tmp_path / file
    version.write_text(solution.replace(old, new, 1), encoding="utf-8")
    places = (EXERCISES / folder, EXERCISES / "shared")
    judge_file = EXERCISES / folder / "judges" / f"{version.stem}.py"
    answer = judge.judge(judge_file, version, torch=False, limit_s=20.0, path=places)
    assert answer.word == ("passed" if right else "failed"), answer.says
