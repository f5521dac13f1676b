from __future__ import annotations

import pytest

from gpucourse.cli.leaks import _judge
from gpucourse.errors import LeftoverError
from gpucourse.model.cloud import CloudResource


def make_resource(*, is_visible: bool) -> CloudResource:
    return CloudResource(kind="instance", id="i-1", region="us-east-2", remove="", seen=is_visible)


@pytest.mark.parametrize(
    ("visibilities", "words", "hint"),
    [
        ([True], "1 course resource is in the account, and no recorded lab accounts for it", "gpucourse leaks --clean"),
        ([True, False, True], "2 course resources are in the account", "gpucourse leaks --clean"),
        ([False], "not everything could be checked (instance), so something may be left", "gpucourse doctor --policy"),
    ],
)
def test_judge_names_what_may_be_billed(visibilities: list[bool], words: str, hint: str) -> None:
    _judge([])
    with pytest.raises(LeftoverError) as error:
        _judge([make_resource(is_visible=is_visible) for is_visible in visibilities])
    assert error.value.exit_code == 8
    assert words in error.value.what
    assert hint in error.value.hint
