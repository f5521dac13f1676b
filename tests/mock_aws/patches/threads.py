"""Requests that are answered at the same time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from moto.core.serialize import AttributePicker

from tests.mock_aws.state import State


def install(_state: State) -> None:
    """Apply the patch of this file."""
    read_a_copy_of_what_requests_change()


@cache  # in one process once
def read_a_copy_of_what_requests_change() -> None:
    """Use a copy of the table of response formats. moto keeps it in a class, and requests add entries. If another thread
    iterates over the table at that moment, it fails with "dictionary changed size during iteration".
    """
    make = AttributePicker.__init__

    def make_with_a_copy(
        self: Any, providers: Any = None, response_transformers: dict[str, Callable[[Any], Any]] | None = None
    ) -> None:
        make(self, providers, dict(response_transformers or {}))

    AttributePicker.__init__ = make_with_a_copy  # type: ignore[method-assign,assignment]
