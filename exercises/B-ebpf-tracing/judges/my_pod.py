"""Judge my_pod.yaml of B.1 by the rules of Kubernetes and the ten policies."""

from __future__ import annotations

from pathlib import Path

import manifests
import policies

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "not-yaml": Way("it cannot be read: {fault}", ("containers:\n    - name: engine", "containers\n    - name: engine")),
    "no-pod": Way("the file needs one object of kind Pod, but has {count}", ("kind: Pod", "kind: pod")),
    "containers": Way("{fault}", ("- name: tracer\n", "- name: sidecar\n")),
    "images": Way("{fault}", ("v0.11.0@sha256:014a95f21c9edf6abe0aea6b07353f96baa4ec291c427bb1176dc7c93a85845c", "v0.11.0")),
    "ports": Way("{fault}", ("containerPort: 8000", 'containerPort: "8000"')),
    "gpu": Way(
        "{fault}", ("SYS_PTRACE]}\n", "SYS_PTRACE]}\n      resources:\n        limits: {nvidia.com/gpu: 1}\n"),
    ),
    "shared": Way("{fault}", ("shareProcessNamespace: true", "sharedProcessNamespace: true")),
    "root": Way("{fault}", ("runAsUser: 0", "runAsUser: 1000")),
    "rights": Way("{fault}", ("add: [SYS_ADMIN, SYS_PTRACE]", "add: [BPF, PERFMON, SYS_PTRACE]")),
    "least": Way("{fault}", ("runAsUser: 0\n", "runAsUser: 0\n        privileged: true\n")),
    "btf": Way("{fault}", ("        - {name: btf, mountPath: /sys/kernel/btf, readOnly: true}\n", "")),
    "tracefs": Way("{fault}", ("mountPath: /sys/kernel/tracing}", "mountPath: /tracing}")),
}  # fmt: skip


def judge(part: Part) -> None:
    """Raise the verdict for the first broken policy, and note the other broken policies."""
    if part.text == (Path(__file__).parent.parent / part.file.name).read_text(encoding="utf-8"):
        raise Verdict("open", sentence="as delivered: the tracer would count nothing")
    try:
        objects = manifests.read(part.text)
    except ValueError as error:
        raise part.wrong("not-yaml", fault=str(error)) from None
    pod = policies.find_pod(objects)
    if not pod:
        raise part.wrong("no-pod", count=sum(thing.get("kind") == "Pod" for thing in objects))
    broken = [policy for policy in policies.check(pod) if not policy.holds]
    refusals = list(manifests.ask_schemas(objects))
    for text in refusals if broken else refusals[1:]:
        part.note(f"also: {text}")
    if broken[1:]:
        part.note(
            f"{len(broken) - 1} more of the ten policies do not hold: {', '.join(policy.policy for policy in broken[1:])}"
        )
    if broken:
        raise part.wrong(broken[0].policy, fault=broken[0].why)
    if refusals:
        raise Verdict("failed", "schema", refusals[0])
    part.note("ten policies hold" + ("" if manifests.has_schemas() else "; Kubernetes' own schemas are not installed"))
