"""Judge a repaired copy: all answers must have the requested length."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gpucourse.judge import Part, Way

WAYS = {"still": Way("eight tokens were asked for, but {count} came: the engine stopped at the end of the text")}


class Stream:
    """An engine that stops after three tokens, unless the request tells it to ignore the end of the text."""

    def __init__(self) -> None:
        self.body: dict[str, Any] = {}

    def open(self, request: Any, **_: object) -> Stream:
        """Send the request, and begin the answer."""
        self.body = json.loads(request.data)
        return self

    def __enter__(self) -> Stream:  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __iter__(self) -> Iterator[bytes]:
        max_tokens = self.body["max_tokens"]
        count = max_tokens if self.body.get("ignore_eos") or self.body.get("min_tokens") == max_tokens else 3
        yield from [b"data: " + json.dumps({"choices": [{"text": "to"}]}).encode()] * count
        usage = {"prompt_tokens": 4, "completion_tokens": count}
        yield b"data: " + json.dumps({"choices": [], "usage": usage}).encode()


def judge(part: Part) -> None:
    """Require eight tokens if eight were requested."""
    part.module.urllib.request.urlopen = Stream().open
    answer = part.call(part.function("complete"), "http://engine", "tiny", "four words of prompt", 8)
    if answer.tokens != 8:
        raise part.wrong("still", count=answer.tokens)
    part.note("every answer has as many tokens as were asked for")
