"""The search through texts of 8.4, and the prompts of its templates."""

from __future__ import annotations

import itertools

import pytest

from tests.unit.exercises.scripts import beside_the_script

prefixes = beside_the_script("08-inference-engines", "prefixes")
template = beside_the_script("08-inference-engines", "template")


def test_search_with_room_for_all_finds_what_texts_share() -> None:
    requests = prefixes.make_requests(30, 3, tenants=2)
    for size in (1, 16, 100):
        assert prefixes.search(requests, 40_000 // size, size) == prefixes.find_beginnings(requests, size)


def test_search_raises_value_error_if_two_requests_have_no_room() -> None:
    with pytest.raises(ValueError, match="70 pages of 16 tokens are too few for two requests"):
        prefixes.search(prefixes.make_requests(30, 8), 70, 16)


def test_count_shared_counts_the_letters_of_a_common_beginning() -> None:
    assert [prefixes.count_shared(*pair) for pair in (("", "a"), ("ab", "ab"), ("abc", "abd"), ("b", "a"))] == [0, 2, 2, 0]


def test_no_order_of_fields_finds_more_than_the_order_of_how_many_share_them() -> None:
    right = ("tools", "system", "documents", "history", "user", "time", "request_id")
    assert template.measure_found(right) == template.find_best()
    assert sorted(right) == sorted(template.FIELDS)
    assert len(list(itertools.permutations(right))) == 5040


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (None, "it has one key, order"),
        ({"order": [], "more": 1}, "it has one key, order"),
        ({"order": "tools"}, "write a list"),
        ({"order": ["tools", "sistem"]}, "there is no field sistem"),
        ({"order": ["tools", "tools"]}, "tools is in the list 2 times"),
        ({"order": [{"tools": 1}]}, "there is no field {'tools': 1}"),
    ],
)
def test_read_template_names_what_is_wrong(document: object, fault: str) -> None:
    file = template.read_template(document)
    assert file.order is None
    assert fault in file.faults[0]


def test_read_template_is_open_while_a_field_is_missing() -> None:
    file = template.read_template({"order": None})
    assert (file.order, file.faults) == (None, [])
    assert template.read_template({"order": list(template.FIELDS)}).order == list(template.FIELDS)
