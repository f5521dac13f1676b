"""Verdicts on learners' files that are right in another way than the solutions, or wrong in a way without a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.judge.client import Judge, JudgeAnswer
from tests.parts import need
from tests.waiting import STUCK_S

EXERCISES = Path(__file__).parents[3] / "exercises"
HPC = "07-hpc-systems"
TRACING = "B-ebpf-tracing"
ONE = "{nvidia.com/gpu: 1}"
BOTH, ALIAS = f"requests: {ONE}\n        limits: {ONE}", f"requests: &it {ONE}\n        limits: *it"
RIGHTS = "SYS_PTRACE]}\n"
PROBE = "      readinessProbe:\n"
REPLICAS = "resources:\n          - name: nvidia.com/gpu\n            replicas: 3"
SPEC = "  name: chat\nspec:\n"
PIP = "RUN pip install --no-cache-dir torch==2.10.0 numpy"
BASE = "python:3.12-slim-bookworm"
VERSIONS = {  # folder, file, the change to the solution, the verdict
    "tokenizers-is-no-secret": (HPC, "my_dockerfile.txt", PIP, "ENV TOKENIZERS_PARALLELISM=no\n" + PIP, True),
    "mounted-secret": (HPC, "my_dockerfile.txt", "RUN pip", "RUN --mount=type=secret,id=hf_token pip", True),
    "platform": (HPC, "my_dockerfile.txt", "FROM ", "FROM --platform=linux/amd64 ", True),
    "base-by-argument": (HPC, "my_dockerfile.txt", f"FROM {BASE}", f"ARG BASE={BASE}\nFROM ${{BASE}}", True),
    "entrypoint": (HPC, "my_dockerfile.txt", "CMD [", "ENTRYPOINT [", True),
    "run-in-two-lines": (HPC, "my_dockerfile.txt", "all --shm", "all \\\n#  --shm", True),
    "user-that-is-not-there": (HPC, "my_dockerfile.txt", "RUN useradd --create-home learner\n", "", False),
    "torch-in-quotes": (HPC, "my_dockerfile.txt", "torch==2.10.0", '"torch"', False),
    "pip-as-a-list": (HPC, "my_dockerfile.txt", PIP, 'RUN ["pip", "install", "torch"]', False),
    "command-in-a-comment": (HPC, "my_dockerfile.txt", "CMD [", "# CMD [", False),
    "python-by-its-path": (HPC, "my_definition.def", "exec python", "exec /opt/course/bin/python", True),
    "another-environment": (HPC, "my_definition.def", "PATH=/opt/course/bin:$PATH", "LC_ALL=C", False),
    "aliases-in-a-pod": (HPC, "my_pods.yaml", BOTH, ALIAS, True),
    "one-in-quotes": (HPC, "my_pods.yaml", f"requests: {ONE}", 'requests: {nvidia.com/gpu: "1"}', True),
    "two-shares": (HPC, "my_pods.yaml", BOTH, "limits: {nvidia.com/gpu: 2}", False),
    "host-ipc-for-mps": (HPC, "my_pods.yaml", SPEC, SPEC + "  hostIPC: true\n", False),
    "host-ipc-refused": (HPC, "my_pods.yaml", SPEC, SPEC + "  hostIPC: false\n", True),
    "way-without-resources": (HPC, "my_pods.yaml", "mps:\n        " + REPLICAS, "mps", False),
    "too-deep": (HPC, "my_pods.yaml", "kind: ConfigMap", "kind: " + "[" * 2000, False),
    "gpu-requested": (TRACING, "my_pod.yaml", RIGHTS, RIGHTS + f"      resources: {{requests: {ONE}}}\n", False),
    "no-gpu-by-number": (TRACING, "my_pod.yaml", RIGHTS, RIGHTS + "      resources: {limits: {nvidia.com/gpu: 0}}\n", True),
    "privileged-engine": (TRACING, "my_pod.yaml", PROBE, "      securityContext: {privileged: true}\n" + PROBE, False),
    "root-that-is-refused": (TRACING, "my_pod.yaml", "runAsUser: 0", "runAsUser: 0\n        runAsNonRoot: true", False),
    "power-of-the-next-size": (TRACING, "my_preload.c", "power(bytes)", "power(bytes) + 1", False),
    "tracer-that-prints": (TRACING, "my_preload.c", "  int code =", '  puts("cudaMalloc");\n  int code =', False),
}  # fmt: skip


@pytest.mark.parametrize("name", VERSIONS)
def test_proof_judges_a_version_by_what_it_does(judge: Judge, tmp_path: Path, name: str) -> None:
    folder, file, old, new, is_right = VERSIONS[name]
    if file.endswith(".c"):
        need("cc")
    answer = judge_version(judge, tmp_path, folder, file, old, new)
    assert answer.word == ("passed" if is_right else "failed"), answer.says


def judge_version(judge: Judge, tmp_path: Path, folder: str, file: str, old: str, new: str) -> JudgeAnswer:
    """Return the verdict on the solution with one change."""
    solution = (EXERCISES / folder / "solutions" / file).read_text(encoding="utf-8")
    assert old in solution
    version = tmp_path / file
    version.write_text(solution.replace(old, new, 1), encoding="utf-8")
    places = (EXERCISES / folder, EXERCISES / "shared")
    judge_file = EXERCISES / folder / "judges" / f"{version.stem}.py"
    return judge.judge(judge_file, version, torch=False, limit_s=STUCK_S, path=places)
