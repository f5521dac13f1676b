"""The targets of the fuzzing: readers of bytes from outside. Each raises only permitted errors, and writes nothing outside its
folder.
"""

from __future__ import annotations

import io
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpucourse.context import Context
from gpucourse.course.catalog import read_module
from gpucourse.course.locate import find_course
from gpucourse.errors import GpucourseError, ManifestError, MissingError, UnreachableError
from gpucourse.labs.aws import ledger
from gpucourse.learning import bundle
from gpucourse.model.deployment import LocalDeployment
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.outside.archives import ZipLimits, unpack_zip
from gpucourse.outside.documents import parse_json
from gpucourse.outside.names import OutsideError, printable, relative_name
from gpucourse.outside.yaml_reader import read_document
from gpucourse.remote import answers
from gpucourse.remote.agent.frames import frame
from gpucourse.remote.agent.pack import CLOSING, LISTING
from gpucourse.remote.unpack import OutputLimits, unpack
from gpucourse.workspace import deployments, runs
from gpucourse.workspace.files import read_mapping, read_metrics, read_record, to_json
from gpucourse.workspace.locate import open_workspace
from gpucourse.workspace.paths import RunPaths
from gpucourse.workspace.settings import read_settings
from tests.learning import FOLDER, MANIFEST

NOW = "2026-01-31T14:25:01+00:00"
RUN = "20260131-142501-otter"
RECORD = to_json(
    RunRecord(
        id=RUN, exercise="1.1", module="1", stack="01-local", mode="local", launcher="python", state="succeeded", created=NOW
    )
)
LAB = to_json(
    LocalDeployment(stack="01-local", uid="u", module="1", template="simulated", phase="ready", created=NOW,
               updated=NOW, nodes_wanted=1)
)  # fmt: skip
SETTINGS = b"""target: hosts
ttl: 4h
budget_usd: 20
hosts: [me@gpu1:22]
ssh_proxy_command: "nc %h %p"
rendezvous_ports: 29500-29599
"""
CHARGE = (
    b'{"v":1,"event":"start","at":"2026-01-31T14:25:01.000+00:00","item":"i-1","kind":"instance","what":"g4dn.xlarge",'
    b'"stack":"u","module":"1","units":"1","market":"spot","zone":"a","usd_per_hour":"0.5","source":"table","date":"2026",'
    b'"note":""}\n'
)
SMALL = ZipLimits(members=100, member_bytes=1 << 20, total_bytes=1 << 22)


@dataclass(frozen=True)
class Target:
    """A reader, the errors that it may raise, and valid inputs to start from. `read` receives the bytes and an empty folder."""

    read: Callable[[bytes, Path], object]
    may_raise: tuple[type[Exception], ...]
    honest: tuple[bytes, ...]


def _store(data: bytes, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _names(data: bytes, _folder: Path) -> None:
    text = data.decode("utf-8", "surrogateescape")
    assert not {unicodedata.category(character) for character in printable(text)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    relative_name(text)


def _manifest(data: bytes, folder: Path) -> None:
    for name in (f"exercises/{FOLDER}/source.py", f"exercises/{FOLDER}/helper.py", f"modules/{FOLDER}/lesson.md"):
        _store(b"", folder / name)
    _store(data, folder / "modules" / FOLDER / "module.yaml")
    read_module(folder / "modules" / FOLDER, folder / "exercises")


def _record(data: bytes, folder: Path) -> None:
    paths = open_workspace(folder / "w").paths
    _store(data, paths.run("1.1", RUN).record)
    _store(data, paths.deployment("01-local"))
    runs.readable(paths)
    deployments.readable(paths)
    file = _store(data, folder / "w" / "x.json")
    for kind in (ExerciseVerdict, RunRecord, LocalDeployment):
        try:
            read_record(file, kind)
        except MissingError:
            continue
    read_mapping(file)


def _tar(data: bytes, folder: Path) -> None:
    (folder / "run").mkdir()
    unpack("node0", [data], RunPaths(folder / "run"), OutputLimits(max_bytes=1 << 20))


def _frames(data: bytes, _folder: Path) -> None:
    for size in (1, 7, len(data) or 1):
        list(answers.read_frames("node0", (data[at : at + size] for at in range(0, len(data), size))))


def _zip(data: bytes, folder: Path) -> None:
    (folder / "root").mkdir()
    unpack_zip(
        _store(data, folder / "x.zip"), folder / "root", ZipLimits(members=100, member_bytes=1 << 20, total_bytes=1 << 22)
    )


def _bundle(data: bytes, folder: Path) -> None:
    context = Context(workspace=open_workspace(folder / "w"), folders=find_course({}), environ={})
    with bundle.open_bundle(context, _store(data, folder / "x.zip")) as content:
        assert not [name for name in content.changed if not name.isprintable()]


def _honest_tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in (
            (LISTING, b'{"refused": [], "same": [], "env": null}'),
            ("files/metrics.json", b'{"wet": true}'),
            ("files/" + "deep/" * 30 + "name", b"x"),
            (CLOSING, b"[]"),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def _honest_zip(method: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as target:
        target.writestr(
            "bundle.json",
            b'{"by": "a", "made": "b", "workspace": "c", "gpucourse": "1", "files": {}, "grade": {"parts": [], "earned": 0, '
            b'"points": 0, "waiting": 0, "bonus": 0, "bonus_points": 0, "changed": {}}}',
        )
        target.writestr(f"runs/1.1/{RUN}/run.json", RECORD)
        target.writestr("deliverables/1.1/answers.yaml", b"exercise: '1.1'\n")
    return stream.getvalue()


FRAMES = b"".join(frame(kind, 0, 0, b"payload" * 9) for kind in (b"L", b"E", b"R"))
ZIPS = (_honest_zip(zipfile.ZIP_STORED), _honest_zip(zipfile.ZIP_DEFLATED))
JSON = (b'{"a": [1, 2.5e3, "\\u00e9\\ud83d\\ude00", null, true, {"b": {}}]}', RECORD, LAB)
TARGETS = {
    "json": Target(lambda data, _: parse_json(data), (OutsideError,), JSON),
    "names": Target(_names, (OutsideError,), (b"files/outputs/metrics.json", "gr\u00fc\u00dfe/x".encode())),
    "yaml": Target(lambda data, _: read_document(data), (), (MANIFEST.encode(), SETTINGS)),
    "settings": Target(lambda data, folder: read_settings(_store(data, folder / "s.yaml")), (ManifestError,), (SETTINGS,)),
    "manifest": Target(_manifest, (ManifestError,), (MANIFEST.encode(),)),
    "records": Target(_record, (MissingError,), (*JSON, b'{"exercise":"1.1","run":"x","mode":"local","verdict":"passed"}')),
    "metrics": Target(lambda data, folder: read_metrics(_store(data, folder / "m.json")), (MissingError,), JSON),
    "ledger": Target(lambda data, folder: ledger.read(_store(data, folder / "l")).per_hour(), (MissingError,), (CHARGE * 3,)),
    "tar": Target(_tar, (UnreachableError, MissingError), (_honest_tar(),)),
    "frames": Target(_frames, (UnreachableError,), (FRAMES,)),
    "zip": Target(_zip, (OutsideError,), ZIPS),
    "bundle": Target(_bundle, (GpucourseError,), ZIPS),
}
