"""Make docs/manifest.md, which describes every key that an author may write, from the models that read the files.

python -m docs.manifest_reference            fails if the page differs from the models
python -m docs.manifest_reference --write    writes it again
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpucourse.course.schema import SCHEMAS, schema
from gpucourse.model.fields import FORMS, NOT_EMPTY

PAGE = Path(__file__).parent / "manifest.md"
WRITE = "python -m docs.manifest_reference --write"
HEAD = f"""# Every key of the YAML files

<!-- Made from the models in src/gpucourse/model. After a change there: {WRITE} -->

What an author writes in `module.yaml`, `rubric.yaml`, `quiz.yaml` and `report.yaml`. [Writing a module](authoring.md) shows
them at work, and [about modules](modules.md) explains how they belong together. A key without a default is required.
A duration is `90s`, `10m`, `1h30m` or a number of seconds, a size `64 MiB`, `1 GiB` or a number of bytes.
"""
_KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "nothing"}


def render() -> str:
    """Return the whole page."""
    sections = [HEAD]
    for file in SCHEMAS:
        document = schema(file)
        sections.append(f"## {file.replace('.schema.json', '.yaml')}\n")
        sections += [_render_object(place, definition) for place, definition in _list_objects(document)]
    return "\n".join(sections)


def find_undescribed() -> Iterator[str]:
    """Yield the keys without a description."""
    for file in SCHEMAS:
        for place, definition in _list_objects(schema(file)):
            for key, field in definition["properties"].items():
                if not field.get("description"):
                    yield f"{file}: {place}.{key}"


def _list_objects(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each mapping that the file may contain once, with its place. The file itself comes first."""
    waiting, seen = [("", document)], {""}
    while waiting:
        place, definition = waiting.pop(0)
        yield place, definition
        for key, field in definition["properties"].items():
            for name in re.findall(r'"#/\$defs/(\w+)"', json.dumps(field)):
                if name not in seen:
                    seen.add(name)
                    waiting.append((f"{place}.{key}".strip("."), document["$defs"][name]))


def _render_object(place: str, definition: dict[str, Any]) -> str:
    lines = [f"### {place}\n"] if place else []
    if place and definition.get("description"):
        lines.append(" ".join(definition["description"].split()) + "\n")
    lines += ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key, field in definition["properties"].items():
        default = "" if key in definition.get("required", ()) else _format_default(field)
        cells = (f"`{key}`", _format_type(field), default, field.get("description", ""))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _format_type(field: dict[str, Any]) -> str:
    """Return, in words, the values that a key accepts."""
    if "$ref" in field:
        return "keys (below)"
    if "anyOf" in field:
        kinds = [_format_type(branch) for branch in field["anyOf"] if branch.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "const" in field or "enum" in field:
        return ", ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    if field.get("type") == "array":
        kind = _format_type(field.get("items", {}))
        return "list of mappings (below)" if kind.startswith("keys") else f"list: {kind}"
    if field.get("type") == "object":
        values = [*field.get("patternProperties", {}).values(), field.get("additionalProperties")]
        return "letters and ranges" if any(value and value.get("type") == "array" for value in values) else "keys and numbers"
    kind = _KINDS.get(field.get("type", ""), "any value")
    pattern = field.get("pattern")
    if pattern in FORMS:
        return FORMS[pattern]
    if pattern and pattern != NOT_EMPTY and "metrics" in pattern:
        return "a path"
    if pattern and "(?![/])" in pattern:
        return "a relative path"
    return kind + _format_limits(field)


def _format_limits(field: dict[str, Any]) -> str:
    low, high, above = field.get("minimum"), field.get("maximum"), field.get("exclusiveMinimum")
    if low is not None and high is not None:
        return f", {low:g} to {high:g}"
    if above is not None:
        return f" above {above:g}" + (f", up to {high:g}" if high is not None else "")
    return f" from {low:g}" if low is not None else ""


def _format_default(field: dict[str, Any]) -> str:
    value = field.get("default")
    if value is None or value in ([], "", {}):
        return "none"
    return "as below" if isinstance(value, dict) else f"`{json.dumps(value, ensure_ascii=False)}`".replace('"', "")


def main(arguments: list[str]) -> int:
    """Compare the page with the models, or store it with --write; return 1 if it differs."""
    if arguments == ["--write"]:
        PAGE.write_text(render(), encoding="utf-8")
    elif arguments:
        sys.stderr.write("usage: python -m docs.manifest_reference [--write]\n")
        return 2
    elif PAGE.read_text(encoding="utf-8") != render():
        sys.stdout.write(f"docs/manifest.md differs from the models. Type: {WRITE}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
