from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gpucourse.local import health, layout


def test_select_nodes_picks_nodes_beyond_a_count() -> None:
    names = ["node10", "node2", "node0", "node", "nodes3", "i-0abc"]
    assert layout.select_nodes(names, {"count": 2}) == ["node10", "node2"]
    assert layout.select_nodes(names, {"count": 0}) == ["node0", "node10", "node2"], "the others are no nodes"
    for count in (-1, 0.5, "0", True, None):
        with pytest.raises(ValueError, match="is not a number of nodes"):
            layout.select_nodes(names, {"count": count})


def test_remove_node_files_leaves_the_other_nodes(tmp_path: Path) -> None:
    for name in ("node1", "node10"):
        (tmp_path / name / "home").mkdir(parents=True)
        (tmp_path / f"{name}.json").write_text("{}")
        (tmp_path / f".{name}.json.99").write_text("{")
    layout.remove_node_files(tmp_path, "node1")
    layout.remove_node_files(tmp_path, "node1")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".node10.json.99", "node10", "node10.json"]


def test_remove_follows_no_links(tmp_path: Path) -> None:
    target = tmp_path / "outside"
    target.mkdir()
    (target / "precious").write_text("x")
    folder = tmp_path / "node0"
    folder.mkdir()
    (folder / "link").symlink_to(target)
    (tmp_path / "direct").symlink_to(target)
    layout.remove(folder)
    layout.remove(tmp_path / "direct")
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (target / "precious").exists()


def test_remove_opens_a_folder_that_its_owner_closed(tmp_path: Path) -> None:
    folder = tmp_path / "node0"
    (folder / "home" / "closed").mkdir(parents=True)
    (folder / "home" / "closed" / "file").write_text("x")
    (folder / "home" / "closed").chmod(0o500)
    layout.remove(folder)
    assert not folder.exists()


def test_find_links_finds_only_those_into_the_folder(tmp_path: Path) -> None:
    """Find the links that a killed run left in the system's temporary folder."""
    folder, near = tmp_path / "nodes", tmp_path / "nodes2"
    links = [Path("/tmp", f"gpucourse-test-{os.getpid()}-{number}") for number in range(3)]
    try:
        links[0].symlink_to(folder / "node0/home/.gpucourse/jobs/r1/tmp")
        links[1].symlink_to(near / "node0/home/.gpucourse/jobs/r1/tmp")
        links[2].mkdir()
        assert layout.find_links(folder) == links[:1]
        layout.remove(links[0])
        assert layout.find_links(folder) == []
    finally:
        for link in links:
            layout.remove(link)


def test_sockets_is_a_short_folder_that_is_swept(tmp_path: Path) -> None:
    uid = f"{tmp_path.name}-{os.getpid()}"
    folder = layout.sockets(uid)
    assert len(os.fsencode(folder / "munge.sock.lock")) < 100
    assert folder != layout.sockets(f"{uid}x")
    folder.mkdir(mode=0o700)
    (folder / "slurm").symlink_to(tmp_path)
    assert [leftover.id for leftover in health.find_leftovers(tmp_path / "nodes", uid, ())] == [str(folder)]
    health.end_everything(tmp_path / "nodes", uid)
    assert not folder.exists()
    assert stat.S_ISDIR(tmp_path.stat().st_mode)  # what the link led to is still there
