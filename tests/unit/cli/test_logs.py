from __future__ import annotations

import pytest

from tests.learning import Learning


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("-f --fold", "--follow and --fold cannot be combined", "gpucourse logs --fold after the run has ended"),
        ("-f --grep x", "--follow and --grep cannot be combined", "gpucourse logs --grep PATTERN after the run has ended"),
        ("--times --fold", "--times can be combined only with --rank", "gpucourse logs --times after the run has ended"),
        ("--since soon", "--since: 'soon' is not a duration", "gpucourse logs --since 5m"),
        ("--grep (", "--grep '(': missing )", r"gpucourse logs --grep '\('"),
    ],
)
def test_logs_refuses_options_with_what_to_type(learning: Learning, words: str, message: str, hint: str) -> None:
    output = " ".join(learning.types("logs", *words.split(), code=2).err.split())
    assert message in output
    assert hint in output
