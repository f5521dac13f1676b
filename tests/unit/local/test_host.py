"""The requests to the process that hosts the nodes."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from gpucourse.local import control, layout
from gpucourse.local.host import Host
from gpucourse.workspace.lock import take
from tests.unit.local.scripted_host import make_spec
from tests.waiting import STUCK_S


async def ask(verb: str, document: object) -> tuple[str, str]:
    return await asyncio.to_thread(control.ask, verb, json.dumps(document), timeout_s=STUCK_S)


def test_host_serves_its_stack_until_its_last_node_goes(folder: Path) -> None:
    uid = folder.name
    lock = take(folder / layout.LOCK)
    assert lock is not None

    async def live() -> None:
        ready, write_end = os.pipe()
        host = Host(folder, uid, lock)
        running = asyncio.create_task(host.run(write_end))
        assert await asyncio.to_thread(os.read, ready, 1) == b"\n"
        os.close(ready)
        assert await ask("ping", {}) == ("here", "")
        word, node = await ask("add", asdict(make_spec(uid)))
        assert (word, json.loads(node)["name"]) == ("node", "node0")
        with pytest.raises(control.ControlRefused, match="node0 is not a separate machine"):
            await ask("power", {"name": "node0", "way": "off"})
        with pytest.raises(control.ControlRefused, match="there is no request 'dance'"):
            await ask("dance", {})
        assert await ask("remove", {"uid": "another", "name": "node0"}) == ("kept", "")
        assert await ask("remove", {"uid": uid, "name": "node0"}) == ("last", "")
        await running
        assert layout.node_names(folder) == []

    asyncio.run(live())
    os.close(lock)
