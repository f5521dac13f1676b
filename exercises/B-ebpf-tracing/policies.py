"""Check a pod with an engine and a tracer against ten policies, and say why a manifest breaks a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import manifests

ENGINE, TRACER = "engine", "tracer"
BTF, TRACEFS = "/sys/kernel/btf", "/sys/kernel/tracing"
TYPES = f"{BTF}/vmlinux"  # the file of BTF that bpftrace reads
RIGHTS = ("SYS_ADMIN", "SYS_PTRACE")
NODE_GPUS = 1


@dataclass(frozen=True)
class Policy:
    """One policy: its name, and in `why` the reason why a pod breaks it. `why` is empty if the policy holds."""

    policy: str
    why: str

    @property
    def holds(self) -> bool:
        """Return whether the manifest meets the policy."""
        return not self.why


def find_pod(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the only Pod of a file, or an empty mapping if the file does not have exactly one."""
    pods = [thing for thing in objects if thing.get("kind") == "Pod"]
    return pods[0] if len(pods) == 1 else {}


def container(pod: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the container with that name, or an empty mapping if there is none."""
    return next((box for box in manifests.containers(pod) if box.get("name") == name), {})


def shares_processes(pod: Mapping[str, Any]) -> bool:
    """Return whether the containers of a pod see each other's processes."""
    return manifests.mapping(pod, "spec").get("shareProcessNamespace") is True


def user_of(pod: Mapping[str, Any], name: str) -> int | None:
    """Return the user of a container's process, or None if the image decides.

    The container's runAsUser overrides the pod's.
    """
    for context in (
        manifests.mapping(container(pod, name), "securityContext"),
        manifests.mapping(pod, "spec", "securityContext"),
    ):
        if "runAsUser" in context:
            return context["runAsUser"] if type(context["runAsUser"]) is int else None  # False is an int, too
    return None


def capabilities(pod: Mapping[str, Any], name: str) -> set[str]:
    """Return the capabilities that a container gets in addition to the usual ones."""
    additions = manifests.mapping(container(pod, name), "securityContext", "capabilities").get("add")
    return {str(word) for word in additions} if isinstance(additions, list) else set()


def gpus_of(box: Mapping[str, Any]) -> int:
    """Return the GPUs that a container's limits request, or 0 if that is not a whole number."""
    count = manifests.resources(box, "limits").get(manifests.GPU, 0)
    return int(count) if str(count).isdecimal() else 0


def count_gpus(pod: Mapping[str, Any]) -> int:
    """Return the number of free GPUs that a node needs for the pod."""
    return sum(gpus_of(box) for box in manifests.containers(pod))


def mounts(pod: Mapping[str, Any], name: str) -> dict[str, tuple[str, bool]]:
    """Return the node's folders that a container mounts: path in the container, path on the node, and whether it is
    read-only."""
    volumes = {str(volume.get("name")): volume for volume in manifests.mappings(manifests.mapping(pod, "spec"), "volumes")}
    places = {}
    for mount in manifests.mappings(container(pod, name), "volumeMounts"):
        source = manifests.mapping(volumes.get(str(mount.get("name")), {}), "hostPath")
        path = source.get("path")
        if isinstance(path, str) and isinstance(mount.get("mountPath"), str) and _has_type(_plain(path), source.get("type")):
            places[_plain(mount["mountPath"])] = (_plain(path), mount.get("readOnly") is True)
    return places


def _has_type(path: str, name: object) -> bool:
    """Return whether a hostPath of this type can be mounted. Without a type, Kubernetes checks nothing."""
    kinds = {BTF: "Directory", TRACEFS: "Directory", TYPES: "File"}
    return path not in kinds or name in (None, "", kinds[path], f"{kinds[path]}OrCreate")


def _plain(path: str) -> str:
    return str(PurePosixPath(path))


def check(pod: Mapping[str, Any]) -> list[Policy]:
    """Return all ten policies in the order in which they stop a pod. Policies that keep it from starting come first."""
    places, capabilities_added = mounts(pod, TRACER), capabilities(pod, TRACER)
    return [
        Policy("containers", _complain_of_containers(pod)),
        Policy("images", _complain_of_images(pod)),
        Policy("ports", _complain_of_ports(pod)),
        Policy("gpu", _complain_of_gpus(pod)),
        Policy("shared", "" if shares_processes(pod) else
               "the containers do not share their process numbers, so the tracer would not see the engine"),
        Policy("root", _complain_of_user(pod)),
        Policy("rights", _complain_of_rights(capabilities_added)),
        Policy("least", _complain_of_too_much(pod, capabilities_added)),
        Policy("btf", _complain_of_place(places, {BTF, TYPES}, "the types of the kernel", read_only=True)),
        Policy("tracefs", _complain_of_place(places, {TRACEFS}, "the list of probes of the kernel", read_only=False)),
    ]  # fmt: skip


def _complain_of_containers(pod: Mapping[str, Any]) -> str:
    names = [str(box.get("name")) for box in manifests.containers(pod)]
    if sorted(names) != [ENGINE, TRACER]:
        return f"the pod has the containers {', '.join(names) or 'none'}, but it needs {ENGINE} and {TRACER}"
    return ""


def _complain_of_images(pod: Mapping[str, Any]) -> str:
    engine = str(container(pod, ENGINE).get("image"))
    if "@sha256:" not in engine:
        return f"{engine} is not a digest (@sha256:...): a tag may name a different image tomorrow"
    tracer = container(pod, TRACER)
    if not manifests.has_version(tracer.get("image")) or tracer.get("imagePullPolicy") != "Never":
        return "the tracer's image is built on the node: it needs a version, and imagePullPolicy: Never"
    return ""


def _complain_of_ports(pod: Mapping[str, Any]) -> str:
    if not all(manifests.ports_are_numbers(box) for box in manifests.containers(pod)):
        return "a containerPort is not a number, so the API server refuses the pod"
    numbers = [port["containerPort"] for port in manifests.mappings(container(pod, ENGINE), "ports")]
    return "" if 8000 in numbers else "the engine listens on 8000, but no containerPort says so"


def _complain_of_gpus(pod: Mapping[str, Any]) -> str:
    if gpus_of(container(pod, ENGINE)) != NODE_GPUS:
        return f"the engine's limits have to ask for {NODE_GPUS} {manifests.GPU}: otherwise it gets none"
    for box in manifests.containers(pod):
        limits, requests = (manifests.resources(box, kind).get(manifests.GPU, 0) for kind in ("limits", "requests"))
        if str(requests) not in ("0", str(limits)):
            return f"{box.get('name')}: requests and limits of {manifests.GPU} differ, which the API server refuses"
    if count_gpus(pod) > NODE_GPUS:
        return f"the pod asks for {count_gpus(pod)} GPUs, and the node has {NODE_GPUS}: the pod would wait for ever"
    return ""


def _complain_of_user(pod: Mapping[str, Any]) -> str:
    if user_of(pod, TRACER) != 0:
        return "bpftrace would refuse to run as this user, whatever its capabilities"
    contexts = (manifests.mapping(pod, "spec", "securityContext"), manifests.mapping(container(pod, TRACER), "securityContext"))
    settings = [context["runAsNonRoot"] for context in contexts if "runAsNonRoot" in context][-1:]
    return "runAsNonRoot refuses user 0, which the tracer needs: the container is never started" if settings == [True] else ""


def _complain_of_rights(additions: set[str]) -> str:
    if prefixed := sorted(word for word in additions if word.startswith("CAP_")):
        return f"a manifest names capabilities without the prefix CAP_: {prefixed[0].removeprefix('CAP_')}"
    needs = {
        "SYS_ADMIN": "to set a uprobe", "SYS_PTRACE": "to follow /proc/PID/root into another container",
    }  # fmt: skip
    missing = [reference for reference in RIGHTS if reference not in additions and "ALL" not in additions]
    return f"the tracer lacks the capability that the kernel requires {needs[missing[0]]}" if missing else ""


def _complain_of_too_much(pod: Mapping[str, Any], additions: set[str]) -> str:
    spec, tracer, engine = manifests.mapping(pod, "spec"), container(pod, TRACER), container(pod, ENGINE)
    if spec.get("hostPID"):
        return "hostPID shows every process of the node to both containers, but the tracer needs only those of the pod"
    for key in ("hostIPC", "hostNetwork"):
        if spec.get(key):
            return f"{key} gives both containers a part of the node that neither needs"
    if manifests.mapping(engine, "securityContext").get("privileged") or capabilities(pod, ENGINE) or mounts(pod, ENGINE):
        return "the engine gets privileges or folders of the node, but it answers requests from strangers and needs none"
    if others := sorted({source for source, _ in mounts(pod, TRACER).values()} - {BTF, TYPES, TRACEFS}):
        return f"the tracer mounts {others[0]} of the node, which it does not need"
    if manifests.mapping(tracer, "securityContext").get("privileged"):
        return "privileged gives the tracer all privileges and all devices, even the GPU: two capabilities are enough"
    dropped = manifests.mapping(tracer, "securityContext", "capabilities").get("drop")
    if not isinstance(dropped, list) or "ALL" not in dropped:
        return "the tracer keeps the usual capabilities of a container, and needs only the two that are added"
    extra = sorted(additions - {*RIGHTS, *(f"CAP_{reference}" for reference in RIGHTS), "BPF", "PERFMON"})
    return f"the tracer asks for {', '.join(extra)}, which it does not need" if extra else ""


def _complain_of_place(places: Mapping[str, tuple[str, bool]], paths: set[str], purpose: str, *, read_only: bool) -> str:
    read_only_by_path = {
        path: is_read_only for path, (source, is_read_only) in places.items() if path == source and path in paths
    }
    if not read_only_by_path:
        return f"the tracer does not see {purpose} of the node in the folder where bpftrace looks for it"
    if writable := [path for path, is_read_only in read_only_by_path.items() if read_only and not is_read_only]:
        return f"{writable[0]} is mounted with write access, but the tracer only reads it"
    return ""
