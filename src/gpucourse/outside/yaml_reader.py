"""Read a YAML file as plain data, with the line of every key. Only this file uses PyYAML.

Words and numbers have the meaning that YAML 1.2 gives them (as in JSON: `true`, `null`, decimal numbers), which editors also
follow. So `no` stays a word, and `1:30` is not ninety.

Anchors, aliases and tags are refused. A manifest does not need them, and a small file that has them can grow without end or
create objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]

MAX_BYTES = 1 << 20
MAX_DEPTH = 16
MAX_EVENTS = 50_000
"""The maximum number of parser events in one file: keys, values, beginnings and ends. The course's largest manifest has
5,000."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_INT = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_AMOUNT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)? \S+")  # such as `242 TFLOP/s`, but not `000 GB`, half of `1,000 GB`
_SPLIT_NUMBER = re.compile(r"0\d\d(?:\.\d+)?")  # the second half of 1,000


@dataclass(frozen=True)
class Complaint:
    """An error at one place in a file. `line` and `column` count from 1; `line` is None if the error is about the whole file,
    and `column` is None if it is not known."""

    path: Path
    reason: str
    line: int | None = None
    column: int | None = None


@dataclass
class Document:
    """The content of a YAML file.

    `data`: None if the file could not be read.
    `lines`: the line of each key.
    `complaints`: the errors in the file.
    `unquoted`: one complaint for each inline list in which a comma may have split one item into two.
    `empty`: whether the file contains nothing except comments.

    A list is in `unquoted` if it contains unquoted text of several words, or the second half of a number such as 1,000. Such a
    list can be read, so only authors see the complaint. A list of whole sentences, each with a capital letter and a full stop,
    is left out, because no comma has split it.
    """

    data: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    complaints: list[Complaint] = field(default_factory=list)
    unquoted: list[Complaint] = field(default_factory=list)
    empty: bool = False

    def line(self, path: Path) -> int | None:
        """Return the line of a key or, if the file does not contain it, of the nearest key around it."""
        while path not in self.lines:
            if not path:
                return None
            path = path[:-1]
        return self.lines[path]


class _RefusedYaml(Exception):
    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


def read_document(raw: bytes) -> Document:
    """Read the bytes of a YAML file. Errors are listed in `complaints`, never raised."""
    document = Document()
    if len(raw) > MAX_BYTES:
        document.complaints.append(Complaint((), f"is larger than {MAX_BYTES >> 20} MiB"))
        return document
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        document.complaints.append(Complaint((), f"is not UTF-8 (byte 0x{raw[error.start]:02x})", line))
        return document
    try:
        _read(text, document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else ()
        document.complaints.append(Complaint((), f"is not YAML: {error.problem or error.context}", *place))
    except yaml.YAMLError as error:
        document.complaints.append(Complaint((), f"is not YAML: {str(error).splitlines()[0]}"))
    except _RefusedYaml as error:
        document.complaints.append(Complaint((), error.reason, error.line))
    if document.complaints and any(not complaint.path for complaint in document.complaints):
        document.data = None
    return document


def _read(text: str, document: Document) -> None:
    events = _check_events(yaml.parse(text, Loader=_LOADER))
    first = next((event for event in events if isinstance(event, yaml.NodeEvent)), None)
    if first is None:
        document.empty = True
        document.complaints.append(Complaint((), "is empty"))
        return
    document.data = _value(first, events, (), document)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            raise _RefusedYaml("contains more than one document (a line ---)", _line(event))


def _check_events(events: Iterator[yaml.Event]) -> Iterator[yaml.Event]:
    depth = 0
    for number, event in enumerate(events):
        line = _line(event)
        if number > MAX_EVENTS:
            raise _RefusedYaml(f"contains more than {MAX_EVENTS // 2} keys and values", line)
        if isinstance(event, yaml.AliasEvent):
            raise _RefusedYaml(f"has an alias (*{event.anchor}): write the value out", line)
        if isinstance(event, yaml.NodeEvent) and event.anchor:
            raise _RefusedYaml(f"has an anchor (&{event.anchor}): write the value out", line)
        if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)) and event.tag not in {None, "!"}:
            raise _RefusedYaml(f"has a tag ({event.tag}): plain values only", line)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _RefusedYaml(f"is nested deeper than {MAX_DEPTH} levels", line)
        yield event


def _value(event: yaml.Event, events: Iterator[yaml.Event], path: Path, document: Document) -> Any:
    document.lines.setdefault(path, _line(event))
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[Any] = []
        bare: list[str] = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            items.append(_value(item, events, (*path, len(items)), document))
            bare += [item.value] if isinstance(item, yaml.ScalarEvent) and _is_bare_text(item) else []
        if event.flow_style and bare and len(items) > 1 and not all(map(_is_sentence, items)):
            document.unquoted.append(Complaint(path, _without_quotes(bare[0])))
        return items
    mapping: dict[str, Any] = {}
    while not isinstance(key := next(events), yaml.MappingEndEvent):
        if not isinstance(key, yaml.ScalarEvent):
            raise _RefusedYaml("has a key that is not a word", _line(key))
        name, line = key.value, _line(key)
        path_of_value = (*path, name)
        if name in mapping:
            document.complaints.append(
                Complaint(path_of_value, f"appears twice, here and in line {document.lines[path_of_value]}", line)
            )
            _value(next(events), events, (*path_of_value, "twice"), Document())
            continue
        document.lines[path_of_value] = line
        mapping[name] = _value(next(events), events, path_of_value, document)
    return mapping


def _is_bare_text(event: yaml.ScalarEvent) -> bool:
    if event.style:
        return False
    return bool(_SPLIT_NUMBER.fullmatch(event.value)) or (" " in event.value and not _AMOUNT.fullmatch(event.value))


def _is_sentence(item: object) -> bool:
    return isinstance(item, str) and item[:1].isupper() and item.endswith((".", "?", "!"))


def _without_quotes(text: str) -> str:
    reason = "has no quotes in an inline list, where every comma begins a new item"
    return f"{text!r} {reason}: put each text in quotes, or write one item per line"


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _scalar(event: yaml.ScalarEvent) -> Any:
    text = event.value
    if event.style or not event.implicit[0]:  # quoted, or a block of text
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
