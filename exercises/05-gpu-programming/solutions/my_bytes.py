"""A solution of 5.12: it counts once each tensor that is read before it is written, and each result that was written."""

from __future__ import annotations


def least_bytes(operations: list[tuple[list[str], list[str]]], bytes_of: dict[str, int], results: list[str]) -> int:
    """Return the bytes of the inputs that are used and of the results that are written."""
    read = {name for reads, _ in operations for name in reads}
    written = {name for _, writes in operations for name in writes}
    return sum(bytes_of[name] for name in (read - written) | (written & set(results)))
