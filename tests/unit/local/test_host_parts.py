"""What the host is made of: its log, its nodes' environments, its bytes; and the driver's thrift."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.local import bounded_log, driver, environment, pumps


def test_the_log_keeps_its_newest_part(tmp_path: Path) -> None:
    file = tmp_path / "host.log"
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    log = bounded_log.BoundedLog(handle)
    for number in range(20_000):
        log.emit(logging.LogRecord("host", logging.WARNING, "", 0, "line %d of many", (number,), None))
    os.close(handle)
    lines = file.read_text().splitlines()
    assert file.stat().st_size < 1 << 19
    assert lines[-1].endswith("WARNING host: line 19999 of many")
    assert all("WARNING host: line" in line for line in lines), "no line is cut"
    assert len(lines) > 1000


def test_a_node_s_environment() -> None:
    host = {
        "PATH": "/usr/bin",
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "AWS_SECRET_ACCESS_KEY": "s",
        "PYTHONPATH": "/x",
        "HOME": "/root",
    }
    node = environment.of_node(
        name="node1", uid="u", user="ann", python="/venv/bin/python", home=Path("/n/home"), shell="/bin/bash", host=host
    )
    assert node["PATH"] == "/venv/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/sbin"
    assert (node["HOME"], node["USER"], node["SHELL"], node["LC_ALL"]) == ("/n/home", "ann", "/bin/bash", "C")
    assert (node["GPUCOURSE_NODE"], node["GPUCOURSE_STACK_UID"], node["GPUCOURSE_NODE_UID"]) == ("node1", "u", "u/node1")
    assert node["PYTHONPATH"] == str(environment.TORCH_EXTENSION), "never the host's own"
    assert "AWS_SECRET_ACCESS_KEY" not in node


@pytest.mark.parametrize("real", [True, False])
def test_which_gpus_may_be_used_is_kept_where_the_node_is_this_computer(real: bool) -> None:
    host = {"PATH": "/usr/bin", "CUDA_VISIBLE_DEVICES": "1", "HF_HOME": "/models", "AWS_SECRET_ACCESS_KEY": "s"}
    node = environment.of_node(
        name="node0", uid="u", user="ann", python="/v/bin/python", home=Path("/h"), shell="/bin/sh", host=host, real=real
    )
    assert ({"CUDA_VISIBLE_DEVICES", "HF_HOME"} <= set(node)) == real
    assert "AWS_SECRET_ACCESS_KEY" not in node


def test_what_a_client_may_change() -> None:
    node = {"PATH": "/bin", "LANG": "C", "LC_ALL": "C", "GPUCOURSE_NODE": "node0", "HOME": "/h"}
    asked = {"LANG": "de", "LC_ALL": "de", "RANK": "1", "NCCL_DEBUG": "INFO", "GPUCOURSE_RUN_DIR": "/r"}
    refused = {"PATH": "/evil", "GPUCOURSE_NODE": "x", "HOME": "/", "LD_PRELOAD": "/x", "RANKS": "1", "PYTHONPATH": "/x"}
    got = environment.of_session(node, {**asked, **refused}, "xterm")
    assert got == {**node, **asked, "TERM": "xterm"}
    assert "TERM" not in environment.of_session(node, {}, None)


def test_bytes_wait_for_room_and_arrive_whole() -> None:
    data = os.urandom(3_000_000)

    async def through_a_pipe() -> bytes:
        reader, writer = os.pipe()
        for handle in (reader, writer):
            os.set_blocking(handle, False)
        writing = asyncio.create_task(pumps.write_all(writer, data))
        writing.add_done_callback(lambda _task: os.close(writer))
        pieces = []
        while piece := await pumps.read_some(reader):
            pieces.append(piece)
        os.close(reader)
        return b"".join(pieces)

    assert asyncio.run(through_a_pipe()) == data


def test_a_reader_that_left() -> None:
    async def into_nowhere() -> None:
        reader, writer = os.pipe()
        os.close(reader)
        try:
            await pumps.write_all(writer, b"x")
        finally:
            os.close(writer)

    with pytest.raises(BrokenPipeError):
        asyncio.run(into_nowhere())


def test_a_driver_loads_little() -> None:
    """64 of them start at once."""
    root = str(Path(driver.__file__).parents[2])
    probe = f"import sys; sys.path.append({root!r}); import gpucourse.local.driver; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", probe], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"asyncio", "json", "pathlib", "typing", "subprocess", "dataclasses", "re"} & set(loaded) == set()


@pytest.mark.parametrize("words", [[], ["up"], ["sideways", "/x/node0.json"], ["up", "/x/node0.json"]])
def test_a_driver_that_is_called_wrongly(words: list[str]) -> None:
    environ = {name: value for name, value in os.environ.items() if name != driver.SPEC_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-I", "-S", driver.__file__, *words], capture_output=True, text=True, check=False, env=environ
    )
    assert done.returncode == 2
    assert done.stderr.startswith("usage:")
