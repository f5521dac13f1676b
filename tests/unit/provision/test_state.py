"""Reading Terraform's state."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import InfrastructureError
from gpucourse.provision import state


def test_addresses(tmp_path: Path) -> None:
    path = tmp_path / "terraform.tfstate"
    assert state.addresses(path) == []
    path.write_bytes(b"\n")
    assert state.addresses(path) == []
    path.write_text(
        '{"version": 4, "resources": ['
        '{"mode": "managed", "type": "a", "name": "b", "instances": [{}]},'
        '{"mode": "data", "type": "a", "name": "read", "instances": [{}]},'
        '{"module": "module.m[0]", "mode": "managed", "type": "a", "name": "c",'
        ' "instances": [{"index_key": 1}, {"index_key": "k"}]},'
        '{"mode": "managed", "type": "a", "name": "none", "instances": []}]}',
        encoding="utf-8",
    )
    assert state.addresses(path) == ["a.b", "module.m[0].a.c[1]", 'module.m[0].a.c["k"]']


@pytest.mark.parametrize("content", [b'{"resources": [', b"[]", b'{"resources": [{"mode": "managed"}]}', b"\xff"])
def test_addresses_says_that_a_state_is_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "terraform.tfstate"
    path.write_bytes(content)
    with pytest.raises(InfrastructureError, match="is damaged") as caught:
        state.addresses(path)
    assert "restore it from a backup" in caught.value.hint
    path.with_name("terraform.tfstate.backup").touch()
    with pytest.raises(InfrastructureError) as caught:
        state.addresses(path)
    assert f"cp '{path}.backup' '{path}'" in caught.value.hint


def test_values_are_the_texts_of_every_attribute(tmp_path: Path) -> None:
    path = tmp_path / "terraform.tfstate"
    assert state.values(path) == set()
    managed = '{"mode": "managed", "type": "a", "name": "b", "instances": [{"attributes": {"id": "i-1", "name": "", "n": 2}}]}'
    path.write_text(f'{{"version": 4, "resources": [{managed}]}}', encoding="utf-8")
    assert state.values(path) == {"i-1"}
