from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from gpucourse.local import layout
from gpucourse.local.namespace_client import NamespaceClient, NamespaceFailed


def test_ask_names_why_the_namespace_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / layout.LOG).write_text("an earlier line\nunshare: Operation not permitted\n")
    monkeypatch.setattr(sys, "executable", "false")
    client = NamespaceClient(tmp_path)
    with pytest.raises(NamespaceFailed, match="does not start: unshare: Operation not permitted"):
        asyncio.run(client.ask("check"))
    assert not client.alive
    with pytest.raises(NamespaceFailed, match="the machines are off"):
        asyncio.run(client.dial("10.77.0.10", 22))
