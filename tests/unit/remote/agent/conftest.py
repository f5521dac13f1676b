"""What tests of the agent share."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from gpucourse.remote import jobs
from gpucourse.remote.agent.job import Job
from tests.unit.remote.agent.stored import BIG, KEYS


@pytest.fixture
def store_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the node's store, with two large files and a small one."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".gpucourse" / "store"
    folder.mkdir(parents=True)
    for name, key in KEYS.items():
        (folder / key).write_bytes(b"0" * (100 if name == "small.py" else BIG))
    return folder


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """Return the folder of the agent as it is on a node."""
    folder = tmp_path / "agent"
    with tarfile.open(fileobj=io.BytesIO(jobs._bundle())) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it since 3.11.4
        tar.extractall(folder)
    return folder


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Return the folder of a run that has not begun."""
    monkeypatch.setenv("HOME", str(tmp_path))
    job = Job("r1")
    for name in ("logs", "ranks"):
        Path(job.path(name)).mkdir(parents=True)
    return job
