from __future__ import annotations

from tests.learning import Learning


def test_trust_lists_a_folder_until_it_is_removed(learning: Learning) -> None:
    folder = learning.root / "theirs"
    folder.mkdir()
    assert f"trusted: {folder}" in learning.types("trust", str(folder)).err
    assert learning.types("trust", "--list", "--json").document["trusted"] == [str(folder)]
    assert f"no longer trusted: {folder}" in learning.types("trust", "--remove", str(folder)).err
    assert learning.types("trust", "--list", "--json").document["trusted"] == []
