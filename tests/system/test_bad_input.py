"""Errors that only a real process or a real node can show: too few open files, no free port."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from tests.system.cli import Learner

pytestmark = pytest.mark.system


def test_deploy_refuses_more_nodes_than_open_files_are_allowed_for(learner: Learner) -> None:
    limited_learner = replace(learner, before=("sh", "-c", 'ulimit -n 256 && exec "$@"', "sh"))
    message = limited_learner.types("deploy", "3", "--nodes", "64", code=3).err
    assert "64 simulated nodes need 660 open files, but the limit here is 256 (ulimit -Hn)" in message
    assert "gpucourse deploy 3 --nodes 23" in message
    assert not learner.stack_folder().exists()


@pytest.mark.slow
def test_run_names_the_setting_when_every_port_is_taken(lab: Learner) -> None:
    settings = lab.workspace / "gpucourse.yaml"
    text = settings.read_text()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings.write_text(f"rendezvous_ports: {port}-{port}\n")
        message = lab.types("run", "3.1", "--nodes", "1", code=3).err
    settings.write_text(text)
    assert f"every port from {port} to {port} is taken on node0" in message
    assert "rendezvous_ports" in message
