"""The files that are sent to a node: their names, their keys, and what its store lacks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpucourse.errors import MissingError, UsageError
from gpucourse.model.plan import Upload
from gpucourse.remote.push import HASHED_BELOW, parcels, push
from tests.unit.remote.agent_link import AgentLink


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "", "a/..", "nul\0"])
def test_parcels_refuses_a_name_that_leads_out_and_a_missing_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    with pytest.raises(UsageError, match="not a name inside the work folder"):
        parcels([Upload(name=name, source=tmp_path / "x")])
    with pytest.raises(MissingError, match=r"cannot read .*nothing: No such file"):
        parcels([Upload(name="x", source=tmp_path / "nothing")])


def test_parcels_names_a_small_file_by_its_content_and_a_large_one_by_its_times(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_text("x")
    large.write_bytes(bytes(HASHED_BELOW))
    uploads = [Upload(name="a", source=small), Upload(name="b", source=large)]
    before = [parcel.key for parcel in parcels(uploads)]
    for file in (small, large):
        os.utime(file, (1, 1))
    after = [parcel.key for parcel in parcels(uploads)]
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


def test_push_sends_the_content_that_the_store_lacks(tmp_path: Path) -> None:
    for name, content in (("small", b"ab"), ("large", bytes(HASHED_BELOW)), ("again", b"ab")):
        (tmp_path / name).write_bytes(content)
    wrapped = parcels([Upload(name=name, source=tmp_path / name) for name in ("small", "large", "again")])
    link = AgentLink(tmp_path / "home")
    assert (push(link, wrapped), push(link, wrapped)) == (HASHED_BELOW + 2, 0)
    store = tmp_path / "home/.gpucourse/store"
    assert {path.name: path.stat().st_size for path in store.iterdir()} == {wrapped[0].key: 2, wrapped[1].key: HASHED_BELOW}


@pytest.mark.parametrize("size", [HASHED_BELOW - 1, HASHED_BELOW + 1])
def test_push_refuses_a_file_that_changed_meanwhile(tmp_path: Path, size: int) -> None:
    (tmp_path / "large").write_bytes(bytes(HASHED_BELOW))
    wrapped = parcels([Upload(name="large", source=tmp_path / "large")])
    os.truncate(tmp_path / "large", size)
    with pytest.raises(UsageError, match="changed while it was being sent"):
        push(AgentLink(tmp_path / "home"), wrapped)
    assert not list((tmp_path / "home/.gpucourse/store").iterdir())
