"""A delivery of records: what is missing, twice, wrong or out of order."""

from __future__ import annotations

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
