"""What a machine says of our files there: only what was asked about is believed."""

from __future__ import annotations

import pytest

from gpucourse.remote.host_probe import _Belonging


@pytest.mark.parametrize(
    ("kind", "id_", "believed"),
    [
        ("link", "/tmp/gpucourse-0123456789ab", True),
        ("link", "/tmp/gpucourse-0123456789ab/..", False),
        ("link", "/tmp/gpucourse-0123456789ab' /etc '", False),
        ("link", "/home/me/.gpucourse/jobs/run-1", False),
        ("folder", "/home/me/.gpucourse/jobs/run-1", True),
        ("folder", "/tmp/gpucourse-0123456789ab", False),
        ("mark", "/home/me/.gpucourse/labs/u1", True),
    ],
)
def test_a_belonging_is_of_the_runs_that_were_asked_about(kind: str, id_: str, believed: bool) -> None:
    assert _Belonging(kind=kind, id=id_).of_these("u1", ["run-1"]) is believed  # type: ignore[arg-type]
