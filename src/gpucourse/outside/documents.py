"""Read JSON from outside. The bytes, the depth, the number of values and the size of each number are limited. The document is
then converted to the requested type, whose fields may have their own limits (`Meta`)."""

from __future__ import annotations

import math
import threading
from typing import Any, TypeVar

import msgspec

from gpucourse.outside.names import OutsideError, printable

T = TypeVar("T")
Meta = msgspec.Meta
"""The limits of a field of a class that data are converted to."""

MAX_BYTES = 4 << 20
MAX_DEPTH = 64
MAX_ITEMS = 200_000
"""The maximum number of values in one document. Empty objects, the largest empty values, need 64 bytes each: about 15 MB in
all."""

_WIDE_BYTES = 16 << 20
"""The maximum number of bytes of a document with characters beyond ASCII. A text with one such character may need four bytes
for each of its characters."""

_MAX_NUMBER = 1 << 1023
_STRUCTURE = b"[{,:"
_TOO_DEEP = f"the JSON document is nested deeper than {MAX_DEPTH} levels"


def parse_json(data: bytes | str, *, max_bytes: int = MAX_BYTES, max_items: int = MAX_ITEMS) -> Any:
    """Parse a JSON document into plain dicts, lists, text, numbers, true, false and None.

    Raises OutsideError if it is not JSON, is longer than `max_bytes`, is nested deeper than MAX_DEPTH, or has more than
    `max_items` values. Also raises it for NaN, Infinity, a number that is too large for a float, or text that is not Unicode.

    Values are counted before the document is parsed, to limit the memory. So every comma, colon and bracket counts as a value,
    even within text.
    """
    raw = _encode(data)
    plain = raw.isascii() and (b"\\" not in raw or b"\\u" not in raw)  # a search for one byte needs a tenth of the time
    limit = max_bytes if plain else min(max_bytes, _WIDE_BYTES)
    if len(raw) > limit:
        raise OutsideError(f"the JSON document has {len(raw)} bytes; the limit is {limit}")
    if len(raw) > max_items and sum(raw.count(mark) for mark in _STRUCTURE) > max_items:
        raise OutsideError(f"the JSON document contains more than {max_items} values")
    try:
        value = msgspec.json.decode(raw)
    except RecursionError:
        raise OutsideError(_TOO_DEEP) from None
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        raise OutsideError(f"it is not JSON: {error}") from None
    _check(value)
    return value


def parse_typed(data: bytes | str, kind: type[T], *, max_bytes: int = MAX_BYTES, max_items: int = MAX_ITEMS) -> T:
    """Parse a JSON document into a dataclass, TypedDict or msgspec Struct. Text is not converted to numbers, and unknown
    members are ignored.

    Raises OutsideError for the same reasons as `parse_json`, and if a member is missing or has the wrong type.
    """
    return convert(parse_json(data, max_bytes=max_bytes, max_items=max_items), kind)


CONVERT_LOCK = threading.RLock()
"""The lock for conversions to a class. msgspec crashes if two threads are the first to use a class that contains other
classes."""


def convert(value: object, kind: type[T]) -> T:
    """Convert plain data from `parse_json` to `kind`. Raises OutsideError if a member is missing or has the wrong type."""
    try:
        with CONVERT_LOCK:
            return msgspec.convert(value, kind, strict=True, str_keys=True)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise OutsideError(f"the JSON document does not have the required form: {printable(str(error))}") from None


def read_attributes(source: object, kind: type[T]) -> T:
    """Return an object of the class `kind` with the attributes of `source`. Nested objects are converted in the same way.

    A missing attribute gets the field's default. Raises msgspec.ValidationError if an attribute has the wrong type, or if a
    required attribute is missing.
    """
    with CONVERT_LOCK:
        return msgspec.convert(source, kind, from_attributes=True)


def _encode(data: bytes | str) -> bytes:
    if isinstance(data, bytes):
        return data
    try:
        return data.encode()
    except UnicodeEncodeError:
        raise OutsideError("it is not JSON: it contains text that is not Unicode") from None


def _check(value: object) -> None:
    """Check the depth and the numbers level by level, without recursion. Texts are skipped early, because a seal may contain
    ten thousand."""
    level: list[object] = [[value]]
    depth = -1
    while containers := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        if depth > MAX_DEPTH:
            raise OutsideError(_TOO_DEEP)
        contents = (item.values() if isinstance(item, dict) else item for item in containers)
        level = [inner for items in contents for inner in items if not isinstance(inner, str)]
        if any(map(_is_too_large, level)):
            raise OutsideError("the JSON document contains a number that is too large")


def _is_too_large(item: object) -> bool:
    if isinstance(item, int):
        return not -_MAX_NUMBER <= item <= _MAX_NUMBER
    return isinstance(item, float) and not math.isfinite(item)
