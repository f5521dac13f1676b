"""The ten policies of B.1's manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

FOLDER = Path(__file__).parents[3] / "exercises" / "B-ebpf-tracing"
manifests = beside_the_script("shared", "manifests")
policies = beside_the_script("B-ebpf-tracing", "policies")
SOLVED = (FOLDER / "solutions" / "my_pod.yaml").read_text(encoding="utf-8")


def solved_with(old: str, new: str) -> dict[str, Any]:
    assert SOLVED.count(old) == 1
    pod: dict[str, Any] = policies.find_pod(manifests.read(SOLVED.replace(old, new)))
    return pod


def find_broken(pod: dict[str, Any]) -> list[str]:
    return [policy.policy for policy in policies.check(pod) if not policy.holds]


@pytest.mark.parametrize(
    ("old", "new", "policy"),
    [
        ("add: [SYS_ADMIN, SYS_PTRACE]", "add: [CAP_SYS_ADMIN, CAP_SYS_PTRACE]", ["rights"]),
        ("add: [SYS_ADMIN, SYS_PTRACE]", "add: [ALL]", ["least"]),
        ("shareProcessNamespace: true", "hostPID: true", ["shared", "least"]),
        ("shareProcessNamespace: true", "shareProcessNamespace: true\n  hostNetwork: true", ["least"]),
        ("mountPath: /dev/shm}", "mountPath: /dev/shm}\n        - {name: tracefs, mountPath: /trace}", ["least"]),
        ("      readinessProbe:\n", "      securityContext: {privileged: true}\n      readinessProbe:\n", ["least"]),
        ("path: /sys/kernel/btf, type", "path: /sys/kernel, type", ["least", "btf"]),
        ("mountPath: /sys/kernel/btf, readOnly: true", "mountPath: /sys/kernel/btf", ["btf"]),
        ("mountPath: /sys/kernel/btf, readOnly: true", "mountPath: /sys/kernel/btf/vmlinux, readOnly: true", ["btf"]),
        ("hostPath: {path: /sys/kernel/tracing, type: Directory}", "emptyDir: {}", ["tracefs"]),
        ("path: /sys/kernel/tracing, type: Directory", "path: /sys/kernel/tracing, type: File", ["tracefs"]),
        ("path: /sys/kernel/btf, type: Directory", "path: /sys/kernel/btf, type: [Directory]", ["btf"]),
        ("limits: {nvidia.com/gpu: 1}", "requests: {nvidia.com/gpu: 1}", ["gpu"]),
    ],
)
def test_check_finds_the_policy_that_is_broken(old: str, new: str, policy: list[str]) -> None:
    assert find_broken(solved_with(old, new)) == policy


@pytest.mark.parametrize(("access", "broken"), [(", readOnly: true", []), ("", ["btf"])])
def test_check_accepts_the_only_file_that_the_tracer_reads(access: str, broken: list[str]) -> None:
    text = SOLVED.replace("mountPath: /sys/kernel/btf, readOnly: true", f"mountPath: /sys/kernel/btf/vmlinux{access}")
    text = text.replace("path: /sys/kernel/btf, type: Directory", "path: /sys/kernel/btf/vmlinux, type: File")
    assert find_broken(policies.find_pod(manifests.read(text))) == broken


@pytest.mark.parametrize("value", [None, [], "text", 3, {"a": [1]}, [None, 7, {"name": 3}]])
def test_check_takes_a_manifest_of_odd_shape(value: object) -> None:
    for key in ("spec", "metadata"):
        assert find_broken({"kind": "Pod", key: value})
    for key in ("containers", "volumes", "securityContext"):
        assert find_broken({"kind": "Pod", "spec": {key: value}})
    parts = ("securityContext", "resources", "ports", "volumeMounts", "image")
    box = {"name": "tracer", **dict.fromkeys(parts, value)}
    assert "rights" in find_broken({"kind": "Pod", "spec": {"containers": [box, {"name": "engine"}]}})
