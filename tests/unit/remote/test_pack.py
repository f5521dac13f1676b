"""What a node offers of what a script left in its folder, whatever a script leaves there."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from gpucourse.remote.agent import job, pack


def pack_and_list(
    home: Path, monkeypatch: pytest.MonkeyPatch, *globs: str, output_limit: int = 1 << 20
) -> tuple[set[str], dict[str, str]]:
    """The names that travel, and what is left out, with its reason."""
    monkeypatch.setenv("HOME", str(home))
    (home / ".gpucourse/jobs/otter/job.json").write_text("{}")
    out = io.BytesIO()
    pack.pack(job.Job("otter"), {"globs": list(globs), "max_bytes": 1 << 20, "output_limit": output_limit, "have": {}}, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        listing = tar.extractfile(pack.LISTING)
        assert listing is not None
        left = {entry["name"]: entry["reason"] for entry in json.load(listing)["left"]}
        return {name.removeprefix("files/") for name in tar.getnames() if name.startswith("files/")}, left


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / ".gpucourse/jobs/otter/work"
    (folder / "run1").mkdir(parents=True)
    (folder / "run1/model.pt").write_text("weights")
    (folder / "latest").symlink_to("run1")
    (folder / "loop").symlink_to(".")
    (folder / "gone").symlink_to("nowhere")
    return folder


@pytest.mark.parametrize("globs", [("**",), ("*",), ("run1", "gone", "latest", "loop")])
def test_links_are_left_out_and_everything_else_is_collected_once(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch, globs: tuple[str, ...]
) -> None:
    packed_names, left = pack_and_list(tmp_path, monkeypatch, *globs)
    assert packed_names == {"run1/model.pt"}
    assert left == dict.fromkeys(("latest", "loop", "gone"), "it is a link, and links are not followed")


def test_names_and_depths_that_nobody_expects(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["-rf", 'we ird\n"name', "ünï", "%s", "..hidden", "a" * 250, "back\\slash"]
    for name in names:
        (work / name).write_text("x")
    (work / os.fsdecode(b"bad\xff")).write_text("x")
    deep = work.joinpath(*["d"] * 60)
    deep.mkdir(parents=True)
    (deep / "f").write_text("x")
    packed_names, _ = pack_and_list(tmp_path, monkeypatch, "**")
    assert set(names) <= packed_names
    assert sum(name.startswith("bad") for name in packed_names) == 1
    assert "/".join(["d"] * 60 + ["f"]) in packed_names


def test_what_is_beyond_the_limit_of_all_files_does_not_travel(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "large").write_bytes(bytes(2000))
    names, left = pack_and_list(work.parents[3], monkeypatch, "large", "run1/*", output_limit=1000)
    assert names == {"run1/model.pt"}
    assert left == {"large": "with it the outputs of this node were more than 1000 B (output_limit)"}
