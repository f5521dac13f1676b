"""Digests of a run's files: every file below its folder, and nothing else."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from gpucourse.workspace import seals
from gpucourse.workspace.files import write_record
from gpucourse.workspace.paths import RunPaths


def test_digests_inside_are_of_files_below_the_folder_only(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    inner = folder / "outputs" / "node\u00a00"
    inner.mkdir(parents=True)
    folder.joinpath("metrics.json").write_text("{}")
    inner.joinpath("a\u3000b").write_text("shown, but not ASCII")
    inner.joinpath("linked").symlink_to(folder / "metrics.json")
    folder.joinpath("elsewhere").symlink_to(inner)
    os.mkfifo(inner / "pipe")
    whole = ("metrics.json", "outputs/node\u00a00/a\u3000b")
    foreign_names = (
        "/metrics.json",
        "//metrics.json",
        "./metrics.json",
        "a/../metrics.json",
        "",
        "/",
        "..",
        "metrics.json/",
        "a\0b",
    )
    elsewhere = (
        "elsewhere/a\u3000b",
        "outputs/node\u00a00/linked",
        "outputs/node\u00a00/pipe",
        "outputs/node\u00a00",
        "gone/x",
    )
    digests = dict(seals.digests_inside(folder, (*foreign_names, *whole, *elsewhere)))
    assert {name for name, digest in digests.items() if digest} == set(whole)
    assert len(digests) == len(whole) + len(foreign_names) + len(elsewhere)


@pytest.mark.parametrize("place", ["d/" * 99, "long name/" * 99])
def test_sha256_of_a_file_deep_down(tmp_path: Path, place: str) -> None:
    name = f"outputs/node0/{place}x"
    tmp_path.joinpath(name).parent.mkdir(parents=True)
    tmp_path.joinpath(name).write_bytes(b"x")
    assert dict(seals.digests_inside(tmp_path, [name])) == {name: hashlib.sha256(b"x").hexdigest()}


def test_sha256_of_a_file_of_any_size(tmp_path: Path) -> None:
    sizes = (0, 1, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (2 << 20) + 5)
    for size in sizes:
        tmp_path.joinpath(str(size)).write_bytes(b"x" * size)
    digests = dict(seals.digests_inside(tmp_path, map(str, sizes)))
    assert digests == {str(size): hashlib.sha256(b"x" * size).hexdigest() for size in sizes}


def test_save_sealed_shows_find_changed_files_what_changed_later(tmp_path: Path) -> None:
    files = RunPaths(tmp_path)
    write_record(files.metrics, {"speed": 1})
    seals.save_sealed(files, {"id": "r"}, {"version": 1, "sha256": {}}, changed_names=["metrics.json"])
    assert seals.find_changed_files(files) == ()
    files.metrics.write_text("{}")
    files.plan.write_text("{}")
    assert seals.find_changed_files(files) == ("metrics.json", "plan.json"), "evidence that came later is no evidence"
    assert seals.find_changed_files(files, ["run.json"]) == ("plan.json",)
    files.hashes.unlink()
    assert seals.find_changed_files(files) == (files.hashes.name,)
