"""A delivery of records: what is missing, twice, wrong or out of order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.exercises.scripts import beside_the_script

shards = beside_the_script("07-hpc-systems", "shards")


def test_check_delivery_says_what_is_missing_wrong_and_out_of_order() -> None:
    bodies = [number.to_bytes(8, "little") + bytes(4) for number in range(6)]
    records = [body + shards.zlib.crc32(body).to_bytes(4, "little") for body in bodies]
    order = [3, 1, 0, 5, 4, 2]
    whole = shards.check_delivery(
        iter([[records[1], records[3]], [records[5], records[2]], [records[4], records[0]]]), order, 2, 3
    )
    assert (whole.missing, whole.twice, whole.wrong, whole.in_windows, whole.full_batches) == (0, 0, 0, False, True)
    broken_delivery = shards.check_delivery(iter([[records[3], records[3]], [bytes(16), records[0]]]), order, 2, 3)
    assert (broken_delivery.missing, broken_delivery.twice, broken_delivery.wrong) == (4, 1, 1)


def test_the_file_leaves_the_page_cache_when_a_window_is_complete_and_all_batches_come(monkeypatch: pytest.MonkeyPatch) -> None:
    delivered: list[bytes] = []
    dropped_at: list[int] = []
    monkeypatch.setattr(shards, "forget", lambda _path: dropped_at.append(len(delivered)))
    batches = [[b"1", b"2"], [b"3", b"4"], [b"5", b"6"], [b"7"]]
    for records in shards.forget_each_window(iter(batches), Path("shard.bin"), 3):
        delivered += records
    assert (delivered, dropped_at) == ([b"1", b"2", b"3", b"4", b"5", b"6", b"7"], [2, 4])
