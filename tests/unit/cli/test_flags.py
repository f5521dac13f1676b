from __future__ import annotations

import pytest

from gpucourse.cli.flags import check_gpu, name_gpus, parse_seconds, read_settings
from gpucourse.errors import UnknownName, UsageError


def test_read_settings_keeps_everything_after_the_first_equals_sign() -> None:
    assert read_settings(["a=1", " b =x=y", "c="], "hint") == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize(
    ("settings", "words"), [(["a"], "not of the form"), (["=1"], "not of the form"), (["a=1", "a=2"], "typed twice: 1 and 2")]
)
def test_read_settings_refuses_a_missing_name_and_a_repeated_name(settings: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_settings(settings, "hint")


def test_parse_seconds_has_a_whole_command_as_hint() -> None:
    assert (parse_seconds("2h", "gpucourse keep 3 2h"), parse_seconds(None, "")) == (7200, None)
    with pytest.raises(UsageError, match="--ttl: 'soon' is not a duration") as error:
        parse_seconds("soon", "gpucourse deploy 3 --ttl 4h", flag="--ttl")
    assert error.value.hint == "gpucourse deploy 3 --ttl 4h"


def test_name_gpus_and_check_gpu_accept_any_case_of_a_name_in_the_table() -> None:
    assert (check_gpu("T4"), check_gpu(None)) == ("t4", None)
    assert name_gpus().startswith("t4, ")
    with pytest.raises(UnknownName, match="there is no GPU 't5'"):
        check_gpu("t5")
