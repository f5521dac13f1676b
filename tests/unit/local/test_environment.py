"""The variables of a node and of a session on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.local import environment


def test_make_node_environment_leaves_secrets_out() -> None:
    host = {
        "PATH": "/usr/bin",
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "AWS_SECRET_ACCESS_KEY": "s",
        "PYTHONPATH": "/x",
        "HOME": "/root",
    }
    node = environment.make_node_environment(
        name="node1", uid="u", user="ann", python="/venv/bin/python", home=Path("/n/home"), shell="/bin/bash", host=host
    )
    assert node["PATH"] == "/venv/bin:/usr/bin:/usr/local/sbin:/usr/sbin:/sbin"
    assert (node["HOME"], node["USER"], node["SHELL"], node["LC_ALL"]) == ("/n/home", "ann", "/bin/bash", "C")
    assert (node["GPUCOURSE_NODE"], node["GPUCOURSE_STACK_UID"], node["GPUCOURSE_NODE_UID"]) == ("node1", "u", "u/node1")
    assert node["PYTHONPATH"] == str(environment.TORCH_EXTENSION), "never the host's own"
    assert "AWS_SECRET_ACCESS_KEY" not in node


@pytest.mark.parametrize("real", [True, False])
def test_make_node_environment_keeps_the_visible_gpus_of_this_computer(real: bool) -> None:
    host = {"PATH": "/usr/bin", "CUDA_VISIBLE_DEVICES": "1", "HF_HOME": "/models", "AWS_SECRET_ACCESS_KEY": "s"}
    node = environment.make_node_environment(
        name="node0", uid="u", user="ann", python="/v/bin/python", home=Path("/h"), shell="/bin/sh", host=host, real=real
    )
    assert ({"CUDA_VISIBLE_DEVICES", "HF_HOME"} <= set(node)) == real
    assert "AWS_SECRET_ACCESS_KEY" not in node


def test_make_session_environment_sets_only_what_a_client_may_change() -> None:
    node = {"PATH": "/bin", "LANG": "C", "LC_ALL": "C", "GPUCOURSE_NODE": "node0", "HOME": "/h"}
    request = {"LANG": "de", "LC_ALL": "de", "RANK": "1", "NCCL_DEBUG": "INFO", "GPUCOURSE_RUN_DIR": "/r"}
    environ_of_client = {
        "PATH": "/evil",
        "GPUCOURSE_NODE": "x",
        "HOME": "/",
        "LD_PRELOAD": "/x",
        "RANKS": "1",
        "PYTHONPATH": "/x",
    }
    got = environment.make_session_environment(node, {**request, **environ_of_client}, "xterm")
    assert got == {**node, **request, "TERM": "xterm"}
    assert "TERM" not in environment.make_session_environment(node, {}, None)
