from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.labs.aws import doctor
from gpucourse.labs.request import PreflightRequest


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (PreflightRequest(region="ohio"), "is not the name of an AWS region"),
        (PreflightRequest(module="0"), "gpucourse deploy 0 --target local"),
        (PreflightRequest(nodes=4), "--nodes needs --module"),
        (PreflightRequest(module="3", nodes=9), "module 3 accepts 1 to 8 nodes"),
    ],
)
def test_doctor_refuses_wrong_options_before_it_asks_aws(context: Context, look: PreflightRequest, words: str) -> None:
    with pytest.raises(UsageError) as error:
        doctor.doctor(context, look)
    assert words in f"{error.value.what} {error.value.hint}"
