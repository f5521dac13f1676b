"""What has to hold of pods that share a GPU, and what Kubernetes itself would refuse where its schemas are at hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-"
KUBERNETES = "1.33.0"
MOST_BYTES = 100_000


def read(text: str) -> list[dict[str, Any]]:
    """The objects of a file of several YAML documents. Raises ValueError with the line where it is none."""
    import yaml

    if len(text) > MOST_BYTES:
        raise ValueError(f"the file has more than {MOST_BYTES:,} characters")
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"line {mark.line + 1}: {getattr(error, 'problem', error)}" if mark else str(error)) from None
    if not all(isinstance(document, dict) for document in documents):
        raise ValueError("a document is not an object with kind and metadata")
    return documents


def find_faults(objects: list[dict[str, Any]], profiles: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """The faults of pods and of the device plugin's ConfigMap: a word for the kind of fault, and a sentence. `profiles` are
    those of the card's MIG."""
    pods = [thing for thing in objects if thing.get("kind") == "Pod"]
    sharing = _find_sharing(objects)
    shared = [pod for pod in pods if any(GPU in _resources(box, "limits") for box in _containers(pod))]
    if sharing is None:
        yield "no-sharing", "no ConfigMap has a config.yaml with `sharing` for nvidia.com/gpu: each pod would take a whole GPU"
    elif sharing[1] != len(shared):
        yield "replicas", f"the ConfigMap makes {sharing[1]} shares of a GPU, and {len(shared)} pods ask for one"
    for pod in pods:
        name = str(pod.get("metadata", {}).get("name"))
        for box in _containers(pod):
            yield from _find_of_container(name, box, profiles)
        if sharing and sharing[0] == "mps" and pod in shared and not pod.get("spec", {}).get("hostIPC"):
            yield "host-ipc", f"pod {name}: MPS clients reach the daemon over the host's IPC, so it needs hostIPC: true"
    yield from ((word, text) for word, text in _ask_schemas(objects))


def _find_of_container(pod: str, box: Mapping[str, Any], profiles: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    limits, requests = _resources(box, "limits"), _resources(box, "requests")
    for resource in {**requests, **limits}:
        if not str(resource).startswith("nvidia.com/"):
            continue
        if resource not in limits or requests.get(resource, limits[resource]) != limits[resource]:
            yield (
                "limits",
                f"pod {pod}: requests and limits of {resource} differ; a GPU is given out whole, so they must be equal",
            )
        if str(resource).startswith(MIG) and str(resource).removeprefix(MIG) not in profiles:
            yield (
                "profile",
                f"pod {pod}: the card has no profile {str(resource).removeprefix(MIG)}; it has {', '.join(profiles)}",
            )
    image = str(box.get("image", ""))
    if "@sha256:" not in image and not re.search(r":(?!latest$)[\w.-]+$", image):
        yield "image", f"pod {pod}: {image or 'no image'} has no version, so tomorrow it may be another program"
    for port in box.get("ports") or []:
        if not isinstance(port, dict) or not isinstance(port.get("containerPort"), int):
            yield "port", f"pod {pod}: containerPort has to be a number, without quotes"


def _find_sharing(objects: list[dict[str, Any]]) -> tuple[str, int] | None:
    """The way of sharing and the number of replicas that the device plugin is told."""
    for thing in objects:
        data = thing.get("data") if thing.get("kind") == "ConfigMap" else None
        if not isinstance(data, dict) or not isinstance(data.get("config.yaml"), str):
            continue
        try:
            inner = read(data["config.yaml"])
        except ValueError:
            continue
        ways = inner[0].get("sharing") if inner else None
        for way, spec in (ways or {}).items():
            for resource in (spec or {}).get("resources") or []:
                if resource.get("name") == GPU and isinstance(resource.get("replicas"), int):
                    return {"timeSlicing": "time-slicing"}.get(way, way), resource["replicas"]
    return None


def _containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    spec = pod.get("spec")
    boxes = spec.get("containers") if isinstance(spec, dict) else None
    return [box for box in boxes or [] if isinstance(box, dict)]


def _resources(box: Mapping[str, Any], kind: str) -> dict[str, Any]:
    resources = box.get("resources")
    wanted = resources.get(kind) if isinstance(resources, dict) else None
    return wanted if isinstance(wanted, dict) else {}


def ask_for(objects: list[dict[str, Any]], prefix: str) -> list[str]:
    """The names of the pods with a container whose limits have a resource of that prefix."""
    pods = [thing for thing in objects if thing.get("kind") == "Pod"]
    wanted = [
        pod for pod in pods if any(str(key).startswith(prefix) for box in _containers(pod) for key in _resources(box, "limits"))
    ]
    return [str(pod.get("metadata", {}).get("name")) for pod in wanted]


def has_schemas() -> bool:
    """Whether kubernetes-validate is installed (`pip install "gpucourse[tracing]"`)."""
    try:
        import kubernetes_validate  # noqa: F401
    except ImportError:
        return False
    return True


def _ask_schemas(objects: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    if not has_schemas():
        return
    import kubernetes_validate

    for thing in objects:
        name = f"{thing.get('kind')} {thing.get('metadata', {}).get('name')}"
        try:
            kubernetes_validate.validate(thing, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            place = ".".join(str(step) for step in error.path)
            yield "schema", f"{name}: {place}: {str(error.message)[:160]}"
        except (kubernetes_validate.SchemaNotFoundError, kubernetes_validate.InvalidSchemaError):
            yield "schema", f"{name}: Kubernetes {KUBERNETES} knows no such kind"
