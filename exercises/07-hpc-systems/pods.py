"""Find faults in pods that share a GPU, and faults by Kubernetes' own schemas, if they are installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import manifests
from manifests import GPU

MIG = "nvidia.com/mig-"


def find_faults(objects: list[dict[str, Any]], profiles: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield the faults of pods and of the device plugin's ConfigMap: a word for the kind of fault, and a sentence.

    `profiles` are the card's MIG profiles.
    """
    pods = [thing for thing in objects if thing.get("kind") == "Pod"]
    sharing = _find_sharing(objects)
    shared = [pod for pod in pods if any(GPU in manifests.resources(box, "limits") for box in manifests.containers(pod))]
    if sharing is None:
        yield "no-sharing", "no ConfigMap has a config.yaml with `sharing` for nvidia.com/gpu: each pod would take a whole GPU"
    elif sharing[0] != "mps":
        yield "no-sharing", f"the pods share the GPU by MPS, but the ConfigMap says {sharing[0]}"
    elif sharing[1] != len(shared):
        yield "replicas", f"the ConfigMap has {sharing[1]} shares of a GPU, but {len(shared)} pods ask for one"
    for pod in pods:
        name = manifests.name_of(pod)
        for box in manifests.containers(pod):
            yield from _find_of_container(name, box, profiles)
        if manifests.mapping(pod, "spec").get("hostIPC"):
            yield (
                "host-ipc",
                f"pod {name}: hostIPC opens the shared memory of the node's other processes to it; MPS clients do not need it, "
                "because the device plugin mounts the daemon's pipe and its shared memory",
            )
        yield from _find_weaknesses(name, pod)
    yield from (("schema", text) for text in manifests.ask_schemas(objects))


def _find_weaknesses(name: str, pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in ("hostPID", "hostNetwork"):
        if manifests.mapping(pod, "spec").get(key):
            yield "weakened", f"pod {name}: {key} removes a boundary between it and the node; no way of sharing needs it"
    if any(manifests.mapping(box, "securityContext").get("privileged") for box in manifests.containers(pod)):
        yield "weakened", f"pod {name}: privileged gives it all devices of the node, including the GPUs of other pods"


def _find_of_container(pod: str, box: Mapping[str, Any], profiles: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    limits, requests = manifests.resources(box, "limits"), manifests.resources(box, "requests")
    for resource in {**requests, **limits}:
        if not str(resource).startswith("nvidia.com/"):
            continue
        if resource not in limits or str(requests.get(resource, limits[resource])) != str(limits[resource]):
            yield (
                "limits",
                f"pod {pod}: requests and limits of {resource} differ; a GPU is assigned whole, so they must be equal",
            )
        elif str(limits[resource]) != "1":
            yield (
                "limits",
                f"pod {pod}: it asks for {limits[resource]} of {resource}, but a pod gets 1 share or instance",
            )
        if str(resource).startswith(MIG) and str(resource).removeprefix(MIG) not in profiles:
            yield (
                "profile",
                f"pod {pod}: the card has no profile {str(resource).removeprefix(MIG)}; it has {', '.join(profiles)}",
            )
    if not manifests.has_version(box.get("image")):
        yield "image", f"pod {pod}: {box.get('image') or 'no image'} has no version, so it may be a different program tomorrow"
    if not manifests.ports_are_numbers(box):
        yield "port", f"pod {pod}: containerPort has to be a number, without quotes"


def _find_sharing(objects: list[dict[str, Any]]) -> tuple[str, int] | None:
    """Return the way of sharing (or both ways) and the number of replicas in the device plugin's configuration."""
    for thing in objects:
        data = thing.get("data") if thing.get("kind") == "ConfigMap" else None
        if not isinstance(data, dict) or not isinstance(data.get("config.yaml"), str):
            continue
        try:
            inner = manifests.read(data["config.yaml"])
        except ValueError:
            continue
        ways = manifests.mapping(inner[0], "sharing") if inner else {}
        for way in ways:
            for resource in manifests.mappings(manifests.mapping(ways, way), "resources"):
                if resource.get("name") == GPU and isinstance(resource.get("replicas"), int):
                    return " and ".join(map(str, ways)), resource["replicas"]
    return None


def ask_for(objects: list[dict[str, Any]], prefix: str) -> list[str]:
    """Return the names of the pods with a container whose limits have a resource with that prefix."""
    pods = [thing for thing in objects if thing.get("kind") == "Pod"]
    asking_pods = [
        pod
        for pod in pods
        if any(str(key).startswith(prefix) for box in manifests.containers(pod) for key in manifests.resources(box, "limits"))
    ]
    return [manifests.name_of(pod) for pod in asking_pods]
