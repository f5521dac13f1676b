"""Unpacking packages into a separate folder, with small programs in place of apt-get and dpkg."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.errors import MissingError, StorageError
from gpucourse.local.machines import packages
from gpucourse.model.event import Event, Note

Answers = Callable[..., dict[str, str]]

WANTED = ("munge", "slurmctld", "slurmd")
CLOSURE = (
    "NOTE: This is only a simulation!\nInst libmunge2 (0.5.15-2 Debian:12 [amd64])\nInst munge (0.5.15-2)\n"
    "Inst slurmctld [21.08.5-1] (22.05.8-4) []\nInst slurmd (22.05.8-4)\nConf munge (0.5.15-2)\n"
)
APT = """#!/bin/sh
echo "apt-get $*" >> '{notes}'
[ "$LC_ALL" = C ] || exit 9
for word in "$@"; do case $word in
  Dir::State::Lists=*) own=1; [ -d "${{word#*=}}/partial" ] || exit 8 ;;
  update) exit 0 ;;
  install) [ "$own" ] && cat '{home}/later' && exit 0; cat '{home}/closure'; cat '{home}/complaint' >&2; exit {code} ;;
  download)
    for name in "$@"; do case $name in -*|*::*|download) ;; *) echo "$name" > "${{name}}_{version}_amd64.deb" ;; esac; done
    cat '{home}/lost' >&2; [ ! -s '{home}/lost' ]; exit ;;
esac; done
"""
DPKG = """#!/bin/sh
echo "dpkg $1 $(basename "$2")" >> '{notes}'
if [ -s '{home}/full' ]; then cat '{home}/full' >&2; exit 2; fi
name=$(cat "$2"); mkdir -p "$3/sbin" "$3/usr/share/$name"; echo "$name" > "$3/usr/share/$name/copyright"
case $name in slurm*) echo "$name" > "$3/sbin/$name-wlm" ;; *) echo "$name" > "$3/usr/sbin/${{name}}d" ;; esac
"""


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    """Return an environment in which apt-get and dpkg answer as told."""

    def put(
        closure: str = CLOSURE, complaint: str = "", lost: str = "", full: str = "", later: str = "", version: str = "22.05.8-4"
    ) -> dict[str, str]:
        home = tmp_path / "stand-in"
        (home / "bin").mkdir(parents=True, exist_ok=True)
        report = {"closure": closure, "complaint": complaint, "lost": lost, "full": full, "later": later}
        for name, text in report.items():
            (home / name).write_text(text, encoding="utf-8")
        facts = {"home": home, "notes": home / "notes", "code": 100 if complaint else 0, "version": version}
        for name, text in (("apt-get", APT), ("dpkg", DPKG)):
            path = home / "bin" / name
            path.write_text(text.format(**facts), encoding="utf-8")
            path.chmod(0o755)
        return {"PATH": f"{home}/bin:/usr/bin:/bin", "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "my: cache, here")}

    return put


def notes(tmp_path: Path) -> list[str]:
    return (tmp_path / "stand-in" / "notes").read_text(encoding="utf-8").splitlines()


def quiet(_event: Event) -> None:
    """Ignore the event."""


def list_left(environ: dict[str, str]) -> list[str]:
    return sorted(path.name for path in packages.cache_folder(environ).iterdir())


def test_unpack_fetches_packages_and_lays_them_out_as_usr(tmp_path: Path, answers: Answers) -> None:
    environ = answers()
    assert packages.find_unpacked(environ) is None
    folder = packages.unpack(environ, WANTED, quiet)
    assert notes(tmp_path) == [
        "apt-get install -s --no-install-recommends munge slurmctld slurmd",
        "apt-get -q -o APT::Sandbox::User=root download libmunge2 munge slurmctld slurmd",
        *(f"dpkg -x {name}_22.05.8-4_amd64.deb" for name in ("libmunge2", "munge", "slurmctld", "slurmd")),
    ]
    assert folder == Path(environ["XDG_CACHE_HOME"]) / "gpucourse" / "slurm" / "22.05.8"
    assert (folder / "usr/sbin/munged").read_text() == "munge\n"
    assert (folder / "usr/sbin/slurmd").readlink() == Path("slurmd-wlm")  # which is laid where older packages put it
    assert (folder / "usr/sbin/slurmctld").read_text() == "slurmctld\n"
    assert not (folder / "usr/sbin/slurmstepd").is_symlink()
    assert list_left(environ) == ["22.05.8", "lock"]
    requests = len(notes(tmp_path))
    assert packages.find_unpacked(environ) == folder == packages.unpack(environ, WANTED, quiet)
    assert len(notes(tmp_path)) == requests, "it is fetched once"


@pytest.mark.parametrize(
    ("version", "folder"),
    [("1%3a22.05.8-4+deb12u3", "22.05.8"), ("20.11.7+really20.11.4-2", "20.11.7+really20.11.4"), ("26.05", "26.05")],
)
def test_unpack_names_the_folder_after_the_version(answers: Answers, version: str, folder: str) -> None:
    assert packages.unpack(answers(version=version), WANTED, quiet).name == folder


def test_unpack_removes_what_a_killed_command_left(answers: Answers) -> None:
    environ = answers()
    half = packages.cache_folder(environ) / ".new-killed" / "layer"
    half.mkdir(parents=True)
    (half / "packages.txt").touch()
    (packages.cache_folder(environ) / "22.05.7" / "usr").mkdir(parents=True)  # no list: not whole
    assert packages.find_unpacked(environ) is None
    packages.unpack(environ, WANTED, quiet)
    assert list_left(environ) == ["22.05.7", "22.05.8", "lock"]


def test_unpack_fetches_lists_of_its_own_when_those_of_the_system_are_old(tmp_path: Path, answers: Answers) -> None:
    environ = answers(complaint="E: Unable to locate package slurmctld", later=CLOSURE)
    heard: list[Event] = []
    packages.unpack(environ, WANTED, heard.append)
    update, install = notes(tmp_path)[1:3]
    folder = packages.cache_folder(environ)
    assert update.startswith(f"apt-get -q -o Dir::State::Lists={folder}/.new-")
    assert update.endswith(" update")
    assert install.endswith(" install -s --no-install-recommends munge slurmctld slurmd")
    assert "apt's lists" in " ".join(event.text for event in heard if isinstance(event, Note))
    assert list_left(environ) == ["22.05.8", "lock"]


@pytest.mark.parametrize(
    ("report", "kind", "words", "way"),
    [
        ({"lost": "E: Failed to fetch x Temporary failure resolving 'x'"}, MissingError, "Temporary failure", "internet"),
        ({"lost": "E: Write error - write (28: No space left on device)"}, StorageError, "no space left", "df -h"),
        ({"full": "dpkg-deb: tar: ./usr: Cannot write: No space left on device"}, StorageError, "no space left", "df -h"),
        ({"full": "dpkg-deb: error: not a Debian format archive"}, MissingError, "not a Debian format", "universe"),
        ({"complaint": "E: Unmet dependencies."}, MissingError, "apt-get says: E: Unmet dependencies.", "universe"),
        ({"closure": "0 upgraded, 0 newly installed\n"}, MissingError, "as installed here", "--reinstall munge"),
    ],
)
def test_unpack_names_what_went_wrong_and_leaves_nothing(
    answers: Answers, report: dict[str, str], kind: type[MissingError], words: str, way: str
) -> None:
    environ = answers(**report)
    with pytest.raises(MissingError) as caught:
        packages.unpack(environ, WANTED, quiet)
    assert type(caught.value) is kind
    assert words in caught.value.what
    assert way in caught.value.hint
    assert list_left(environ) == ["lock"]
    assert packages.find_unpacked(environ) is None


def test_unpack_says_that_there_is_no_apt(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    assert not packages.can_unpack(environ)
    with pytest.raises(MissingError, match="only on Debian and Ubuntu"):
        packages.unpack(environ, WANTED, quiet)
    assert list_left(environ) == ["lock"]
