from __future__ import annotations

import pytest

from gpucourse.units import parse_moment
from gpucourse.workspace import runs
from tests.learning import Learning


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("-f --fold", "--follow and --fold cannot be combined", "gpucourse logs --fold after the run has ended"),
        ("-f --grep x", "--follow and --grep cannot be combined", "gpucourse logs --grep PATTERN after the run has ended"),
        ("--times --fold", "--times can be combined only with --rank", "gpucourse logs --times after the run has ended"),
        ("--since soon", "--since: 'soon' is not a duration", "gpucourse logs --since 5m"),
        ("otter --run latest", "two runs were typed: otter and --run latest", "leave out --run latest"),
        ("--grep (", "--grep '(': missing )", r"gpucourse logs --grep '\('"),
    ],
)
def test_logs_refuses_options_with_what_to_type(learning: Learning, words: str, message: str, hint: str) -> None:
    output = " ".join(learning.types("logs", *words.split(), code=2).err.split())
    assert message in output
    assert hint in output


def test_logs_with_a_pattern_that_matches_no_line_says_so(learning: Learning) -> None:
    run = learning.record().id
    for words in ([run], ["--run", "latest"]):
        result = learning.types("logs", *words, "--grep", "zzz")
        assert (result.out, result.err) == ("", f"no line of run {run} matches 'zzz'\n")
    for log in (learning.folder(runs.find(learning.context.paths, run)) / "logs").iterdir():
        log.unlink()
    assert f"run {run} has no logs" in learning.types("logs", run).err
    assert "gpucourse logs" not in learning.types("runs").out


@pytest.mark.parametrize(("collected_at", "is_late"), [(12, False), (60, True)])
def test_logs_with_times_says_that_a_run_was_not_followed_to_its_end(
    learning: Learning, collected_at: int, is_late: bool
) -> None:
    record = learning.record(created="2026-12-01T10:00:00.000+00:00", ended="2026-12-01T10:00:10+00:00")
    files = runs.files_of(learning.context.paths, record)
    begin_s = parse_moment(record.created).timestamp()
    files.rank_times("node0", 0).write_text(f"{len('found it') + 1} {begin_s + collected_at}\n")
    result = learning.types("logs", "--times")
    assert f"{collected_at}.000 s  [n0 r0] found it" in result.out
    late = "the run was not followed to its end, at 10.0 s: lines with a later time show when they were collected"
    assert (late in " ".join(result.err.split())) == is_late
