"""The verdict on a part, as an exception that ends the judging."""

from __future__ import annotations

from typing import Any


class Verdict(Exception):
    """The result for a part. `word` is passed, failed, open or error; `way` is the wrong way's name, and `case` the input.

    `suspicion` is set if the way is not proved: see `counterfactual`.
    """

    suspicion: dict[str, Any] | None = None

    def __init__(self, word: str, way: str = "", sentence: str = "", case: str = "") -> None:
        super().__init__(word, way, sentence, case)  # all arguments, so that another process can make a copy
        self.word, self.way, self.says, self.case = word, way, sentence, case
