"""What a person reads of a node that answers with an error of its own."""

from __future__ import annotations

import json

import pytest

from gpucourse.errors import StorageError
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from gpucourse.remote.answers import JobState
from gpucourse.remote.jobs import answer

NODE = Node(
    name="node0", role="head", address="127.0.0.1", port=22, private_address="127.0.0.1", user="me", gpus=0, instance_type="",
    python="python3", mode="hosts",
)  # fmt: skip


def test_answer_hints_how_to_check_an_error_of_the_disk() -> None:
    complaint = json.dumps({"error": "Permission denied: /home/me/.gpucourse", "kind": "storage"}).encode()
    with pytest.raises(StorageError, match="node0: Permission denied") as caught:
        answer(NODE, "states", JobState, CommandResult(code=3, stdout=complaint, stderr=b""))
    assert "See whether that is true: gpucourse ssh, then df -h ~" in caught.value.hint
