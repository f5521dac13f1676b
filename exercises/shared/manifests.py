"""Handle Kubernetes manifests as data: read them, search them for containers, check them against Kubernetes' schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

GPU = "nvidia.com/gpu"
KUBERNETES = "1.33.0"
MAX_BYTES = 100_000


def read(text: str) -> list[dict[str, Any]]:
    """Return the objects in a file of several YAML documents. Raises ValueError with the line of a fault."""
    import yaml

    if len(text) > MAX_BYTES:
        raise ValueError(f"the file has more than {MAX_BYTES:,} characters")
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"line {mark.line + 1}: {getattr(error, 'problem', error)}" if mark else str(error)) from None
    except RecursionError:
        raise ValueError("lists and mappings are nested too deeply") from None
    if not all(isinstance(document, dict) for document in documents):
        raise ValueError("a document is not an object with kind and metadata")
    return documents


def name_of(thing: Mapping[str, Any]) -> str:
    """Return the name in an object's metadata, or "None" if it has none."""
    return str(mapping(thing, "metadata").get("name"))


def mapping(thing: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """Return the mapping at that path of keys, or an empty one if there is none."""
    value: Any = thing
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def mappings(thing: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the mappings in the list under that key, or none if it is not a list."""
    items = thing.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def containers(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the containers of a pod, without its init containers."""
    return mappings(mapping(pod, "spec"), "containers")


def resources(container: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the `limits` or `requests` of a container."""
    return mapping(container, "resources", kind)


def has_version(image: object) -> bool:
    """Return whether an image is named by a digest or by a tag other than latest."""
    text = str(image or "")
    return "@sha256:" in text or re.search(r":(?!latest$)[\w.-]+$", text) is not None


def ports_are_numbers(container: Mapping[str, Any]) -> bool:
    """Return whether each port of a container is a number, as the API server requires."""
    ports = container.get("ports") or []
    if not isinstance(ports, list):
        return False
    numbers = [port.get("containerPort") if isinstance(port, dict) else None for port in ports]
    return all(type(number) is int for number in numbers)  # True is an int, too


def has_schemas() -> bool:
    """Return whether kubernetes-validate is installed (`pip install "gpucourse[tracing]"`)."""
    try:
        import kubernetes_validate  # noqa: F401
    except ImportError:
        return False
    return True


def ask_schemas(objects: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the faults that Kubernetes' own schemas find, a sentence for each object.

    Without kubernetes-validate, nothing is checked.
    """
    if not has_schemas():
        return
    import kubernetes_validate

    for thing in objects:
        name = f"{thing.get('kind')} {name_of(thing)}"
        try:
            kubernetes_validate.validate(thing, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            place = ".".join(str(step) for step in error.path)
            yield f"{name}: {place}: {str(error.message)[:160]}"
        except (kubernetes_validate.SchemaNotFoundError, kubernetes_validate.InvalidSchemaError):
            yield f"{name}: Kubernetes {KUBERNETES} has no kind of this name"
