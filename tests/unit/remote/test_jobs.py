"""The messages about a node that answers with its own error."""

from __future__ import annotations

import json

import pytest

from gpucourse.errors import GpucourseError, StorageError, UnreachableError
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from gpucourse.remote import jobs
from gpucourse.remote.answers import JobState
from gpucourse.remote.jobs import answer
from tests.unit.remote.test_slurm_refusals import HEAD

NODE = Node(
    name="node0", role="head", address="127.0.0.1", port=22, private_address="127.0.0.1", user="me", gpus=0, instance_type="",
    python="python3", mode="hosts",
)  # fmt: skip


def test_answer_hints_how_to_check_an_error_of_the_disk() -> None:
    complaint = json.dumps({"error": "Permission denied: /home/me/.gpucourse", "kind": "storage"}).encode()
    with pytest.raises(StorageError, match="node0: Permission denied") as caught:
        answer(NODE, "states", JobState, CommandResult(code=3, stdout=complaint, stderr=b""))
    assert "To check: gpucourse ssh, then df -h ~" in caught.value.hint


@pytest.mark.parametrize(
    ("stderr", "kind", "words"),
    [
        (b"tar: No space left on device", StorageError, "no space left on the node's disk"),
        (b"mkdir: Read-only file system", StorageError, "cannot be written: read-only file system"),
        (b"Segmentation fault", UnreachableError, "start ended with code 3 on the node and printed: Segmentation fault"),
    ],
)
def test_failure_explains_what_the_node_said(stderr: bytes, kind: type[GpucourseError], words: str) -> None:
    error = jobs.failure(HEAD, "start", 3, stderr)
    assert isinstance(error, kind)
    assert words in error.what
