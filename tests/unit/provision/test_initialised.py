"""What `terraform init` left behind: when it still holds, what becomes of the pinned checksums, and who else gets it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpucourse.provision import initialised
from gpucourse.provision.initialised import Kept

VERSION = (1, 9, 0)
LOCK = """provider "host/ns/aws" {
  version     = "5.0.0"
  constraints = ">= 5.0.0"
  hashes = [
    "h1:abc=",
    "zh:def",
  ]
}
"""


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    program = tmp_path / "mirror" / "provider"
    program.parent.mkdir()
    program.write_text("a program")
    return program.parent


def stack(folder: Path, text: str = "a") -> Path:
    (folder / "modules" / "x").mkdir(parents=True)
    (folder / "main.tf").write_text(text)
    (folder / "modules" / "x" / "main.tf").write_text("b")
    (folder / ".terraform.lock.hcl").write_text(LOCK)
    return folder


def init(folder: Path, mirror: Path) -> Path:
    """What Terraform would do; the link to the provider."""
    plugin = folder / ".terraform" / "providers" / "host" / "ns" / "aws" / "5.0.0" / "linux_amd64"
    plugin.parent.mkdir(parents=True, exist_ok=True)
    plugin.unlink(missing_ok=True)
    plugin.symlink_to(mirror)
    (folder / ".terraform" / "modules").mkdir(exist_ok=True)
    (folder / ".terraform" / "modules" / "modules.json").write_text("{}")
    return plugin


def lock(folder: Path) -> str:
    return (folder / ".terraform.lock.hcl").read_text()


def test_it_is_done_once_until_something_changes(tmp_path: Path, mirror: Path) -> None:
    folder = stack(tmp_path / "s")
    assert not initialised.is_initialised(folder, VERSION)
    plugin = init(folder, mirror)
    initialised.mark_initialised(folder, VERSION)
    assert initialised.is_initialised(folder, VERSION)
    assert not initialised.is_initialised(folder, (1, 10, 0))
    (folder / "modules" / "x" / "main.tf").write_text("c")
    assert not initialised.is_initialised(folder, VERSION)
    initialised.mark_initialised(folder, VERSION)
    plugin.unlink()
    assert not initialised.is_initialised(folder, VERSION), "the link to the provider is gone"
    init(folder, mirror)
    assert initialised.is_initialised(folder, VERSION)
    (folder / ".terraform" / "gpucourse-init").write_text("")
    assert not initialised.is_initialised(folder, VERSION)


def test_another_provider_in_the_same_place_is_compared_with_the_pins_again(tmp_path: Path, mirror: Path) -> None:
    folder = stack(tmp_path / "s")
    init(folder, mirror)
    initialised.mark_initialised(folder, VERSION)
    assert "hashes" not in lock(folder)
    assert lock(folder) == LOCK.replace('  hashes = [\n    "h1:abc=",\n    "zh:def",\n  ]\n', "")
    (mirror / "provider").write_text("another program")
    assert not initialised.is_initialised(folder, VERSION)
    initialised.pin(folder)
    assert lock(folder) == LOCK
    initialised.mark_initialised(folder, VERSION)
    shutil.rmtree(mirror)
    assert not initialised.is_initialised(folder, VERSION)


def test_pins_that_were_never_put_aside_stay(tmp_path: Path) -> None:
    folder = stack(tmp_path / "s")
    initialised.pin(folder)
    assert lock(folder) == LOCK


def test_a_lock_file_of_the_learners_own_stays(tmp_path: Path, mirror: Path) -> None:
    folder = stack(tmp_path / "s")
    init(folder, mirror)
    initialised.mark_initialised(folder, VERSION)
    newer = LOCK.replace("5.0.0", "5.1.0")
    (folder / ".terraform.lock.hcl").write_text(newer)
    assert not initialised.is_initialised(folder, VERSION)
    initialised.pin(folder)
    assert lock(folder) == newer


def kept_from(folder: Path, mirror: Path, kept: Kept) -> str:
    """Do `init` in a stack, and keep what it made; under which key."""
    key = kept.key(stack(folder))
    init(folder, mirror)
    initialised.mark_initialised(folder, VERSION)
    kept.keep(folder, key)
    return key


def test_the_next_stack_with_the_same_files_gets_it(tmp_path: Path, mirror: Path) -> None:
    kept = Kept(tmp_path / "cache", VERSION, {}, mirror)
    assert not kept.take(stack(tmp_path / "none yet"))
    key = kept_from(tmp_path / "first", mirror, kept)
    kept.keep(tmp_path / "first", key)
    assert [path.name for path in kept.place.iterdir()] == [key], "nothing half made is left there"

    second = stack(tmp_path / "second")
    assert kept.take(second)
    assert initialised.is_initialised(second, VERSION)
    assert "hashes" not in lock(second)
    initialised.pin(second)
    assert lock(second) == LOCK, "the pins came along"

    other = stack(tmp_path / "other", "other files")
    assert not kept.take(other)
    for different in (
        Kept(kept.place, (1, 10, 0), {}, mirror),
        Kept(kept.place, VERSION, {"TF_PLUGIN_CACHE_DIR": "/x"}, mirror),
        Kept(kept.place, VERSION, {}, None),
    ):
        assert not different.take(stack(tmp_path / str(id(different))))


def test_what_is_kept_is_dropped_when_it_does_not_hold_any_more(tmp_path: Path, mirror: Path) -> None:
    kept = Kept(tmp_path / "cache", VERSION, {}, mirror)
    key = kept_from(tmp_path / "first", mirror, kept)
    (mirror / "provider").write_text("another program")
    second = stack(tmp_path / "second")
    assert not kept.take(second)
    assert lock(second) == LOCK, "Terraform compares the new program with the pins"
    assert not (kept.place / key).exists()


def test_a_provider_that_was_copied_is_not_kept(tmp_path: Path, mirror: Path) -> None:
    kept = Kept(tmp_path / "cache", VERSION, {}, mirror)
    folder = stack(tmp_path / "s")
    key = kept.key(folder)
    plugin = init(folder, mirror)
    plugin.unlink()
    shutil.copytree(mirror, plugin)
    initialised.mark_initialised(folder, VERSION)
    assert initialised.is_initialised(folder, VERSION)
    kept.keep(folder, key)
    assert not kept.place.exists(), "700 MB a stack are not for keeping"


def test_a_cache_that_takes_nothing_costs_only_speed(tmp_path: Path, mirror: Path) -> None:
    (tmp_path / "cache").write_text("a file in its place")
    kept = Kept(tmp_path / "cache", VERSION, {}, mirror)
    kept_from(tmp_path / "s", mirror, kept)
    assert not kept.take(stack(tmp_path / "t"))
