from __future__ import annotations

import pytest

from gpucourse.errors import UsageError
from gpucourse.runs.settle import cancel
from tests.learning import Learning


def test_cancel_of_a_run_that_has_ended_or_is_lost_says_how_it_ended(learning: Learning) -> None:
    ended_run, lost_run = learning.record(), learning.record(state="running", collected=False)
    for record, state in ((ended_run, "succeeded"), (lost_run, "lost")):
        with pytest.raises(UsageError, match=f"has ended already: {state}") as caught:
            cancel(learning.context, record)
        assert caught.value.hint == f"gpucourse logs {record.id}"
