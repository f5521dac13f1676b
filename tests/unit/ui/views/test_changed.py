from __future__ import annotations

from gpucourse.labs.results import ChangeResult
from gpucourse.ui.views import changed
from tests.unit.ui.examples import END, render_page


def test_change_result_says_what_changed_and_what_did_not_go_well() -> None:
    change = ChangeResult(
        stack="03-aws-t4", module="3", title="03-aws-t4 is stopped", changed=["node0 is stopped"],
        warnings=["its deadline stands"], expires=END, usd_per_hour=None, next="gpucourse start 3",
    )  # fmt: skip
    page = render_page(changed.change_result(change, "gpucourse answer 3.2"))
    for words in (
        "03-aws-t4 is stopped",
        "node0 is stopped",
        "its deadline stands",
        "not known",
        "Useful now: gpucourse start 3",
        "Next: gpucourse answer 3.2",
    ):
        assert words in page
