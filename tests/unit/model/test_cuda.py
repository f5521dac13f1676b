"""The passes that lanes need in shared memory, and the effect of padding each row by one element."""

from __future__ import annotations

import pytest

from gpucourse.model.cuda import Access, CudaRequest, count_turns, widen_rows


def make_request(step: int, *, lanes: int = 32, size: int = 4, access: Access = "shared_load") -> CudaRequest:
    addresses: list[int | None] = [1024 + lane * step if lane < lanes else None for lane in range(32)]
    return CudaRequest(file="my.cu", line=7, access=access, size=size, addresses=addresses)


@pytest.mark.parametrize(("step", "turns"), [(0, 1), (4, 1), (8, 2), (16, 4), (128, 32), (132, 1), (256, 32)])
def test_count_turns_is_the_most_words_of_one_bank(step: int, turns: int) -> None:
    assert count_turns([1024 + lane * step for lane in range(32)]) == turns


def test_widen_rows_computes_a_wider_row_only_for_a_walk_down_a_column() -> None:
    assert widen_rows(make_request(128)) == 1
    assert widen_rows(make_request(64)) == 1
    assert widen_rows(make_request(124)) == 32, "a wider row may also be worse"
    assert widen_rows(make_request(128, lanes=16)) == 1
    for request in (make_request(4), make_request(0), make_request(128, size=8), make_request(128, access="global_load")):
        assert widen_rows(request) is None
    assert widen_rows(make_request(128, lanes=1)) is None
