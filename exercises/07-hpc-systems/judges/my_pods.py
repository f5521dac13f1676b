"""Judge my_pods.yaml of 7.1 by the rules of the device plugin and of Kubernetes."""

from __future__ import annotations

from pathlib import Path

import manifests
import mig
import pods

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "replicas": Way("{fault}", ("replicas: 3", "replicas: 4")),
    "limits": Way(
        "{fault}",
        (
            "8000\n      resources:\n        requests: {nvidia.com/gpu: 1}\n        limits: {nvidia.com/gpu: 1}",
            "8000\n      resources:\n        requests: {nvidia.com/gpu: 1}\n        limits: {nvidia.com/gpu: 2}",
        ),
    ),
    "profile": Way(
        "{fault}",
        (
            "requests: {nvidia.com/mig-1g.10gb: 1}\n        limits: {nvidia.com/mig-1g.10gb: 1}",
            "requests: {nvidia.com/mig-1g.5gb: 1}\n        limits: {nvidia.com/mig-1g.5gb: 1}",
        ),
    ),
    "image": Way("{fault}", ("vllm-openai:v0.11.0\n      ports:", "vllm-openai:latest\n      ports:")),
    "port": Way("{fault}", ("containerPort: 8000", 'containerPort: "8000"')),
    "host-ipc": Way("{fault}", ("name: chat\nspec:\n", "name: chat\nspec:\n  hostIPC: true\n")),
    "weakened": Way("{fault}", ("name: chat\nspec:\n", "name: chat\nspec:\n  hostPID: true\n")),
    "no-sharing": Way("{fault}", ("- name: nvidia.com/gpu", "- name: amd.com/gpu")),
    "not-yaml": Way("it cannot be read: {fault}", ("name: tenant\nspec:", "name: tenant\nspec")),
    "no-instance": Way(
        "pod tenant no longer asks for a MIG instance: its limits have to name one",
        ("limits: {nvidia.com/mig-1g.10gb: 1}", "limits: {}"),
    ),
    "no-share": Way(
        "pod {name} no longer asks for a share of a GPU: three pods share one, so each asks for nvidia.com/gpu in its limits",
        ("8000\n      resources:\n        requests: {nvidia.com/gpu: 1}\n        limits: {nvidia.com/gpu: 1}", "8000"),
    ),
    "other-instance": Way(
        "pod tenant should have an instance of 1g.10gb, but asks for another profile",
        (
            "requests: {nvidia.com/mig-1g.10gb: 1}\n        limits: {nvidia.com/mig-1g.10gb: 1}",
            "limits: {nvidia.com/mig-7g.80gb: 1}",
        ),
    ),
    "pods-gone": Way(
        "{count} of four pods are left: repair them, but keep chat, search, speech and tenant with what they ask for",
        ("  name: tenant", "  name: guest"),
    ),
}
NAMES = {"chat", "search", "speech", "tenant"}


def judge(part: Part) -> None:
    """Raise the verdict for the first fault, and note the number of the others. The learner should find them by reading."""
    if part.text == (Path(__file__).parent.parent / part.file.name).read_text(encoding="utf-8"):
        raise Verdict("open", sentence="as delivered: its faults are not repaired yet")
    try:
        objects = manifests.read(part.text)
    except ValueError as error:
        raise part.wrong("not-yaml", fault=str(error)) from None
    present = {manifests.name_of(thing) for thing in objects if thing.get("kind") == "Pod"} & NAMES
    if present != NAMES:
        raise part.wrong("pods-gone", count=len(present))
    if "tenant" not in pods.ask_for(objects, pods.MIG):
        raise part.wrong("no-instance")
    if without := sorted(NAMES - {"tenant"} - set(pods.ask_for(objects, pods.GPU))):
        raise part.wrong("no-share", name=without[0])
    profiles = {profile.name: profile.gib for profile in mig.CARDS["a100-80"].profiles}
    faults = list(pods.find_faults(objects, profiles))
    if len(faults) > 1:
        part.note(f"{len(faults) - 1} more {'fault' if len(faults) == 2 else 'faults'} after this one")
    if faults and faults[0][0] == "schema":
        raise Verdict("failed", "schema", faults[0][1])
    if faults:
        raise part.wrong(faults[0][0], fault=faults[0][1])
    if "tenant" not in pods.ask_for(objects, f"{pods.MIG}1g.10gb"):
        raise part.wrong("other-instance")
    part.note(
        "four pods and the device plugin agree"
        + ("" if manifests.has_schemas() else "; Kubernetes' own schemas are not installed")
    )
