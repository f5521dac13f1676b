"""The work of the process of one mock account (`process` starts and ends it)."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path

os.environ.pop("MOTO_ACCOUNT_ID", None)
os.environ.pop("MOTO_AMIS_PATH", None)
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"  # the patches add the course's images
os.environ["MOTO_ENABLE_AMI_VALIDATION"] = "true"
os.environ["MOTO_ENABLE_KEYPAIR_VALIDATION"] = "true"
os.environ["MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION"] = "true"

from moto.moto_api._internal import mock_random
from werkzeug.serving import make_server

from tests.mock_aws import patches
from tests.mock_aws.computers import SimulatedComputers
from tests.mock_aws.gate import Gate
from tests.mock_aws.process import LOG
from tests.mock_aws.state import State


def main(folder: str, *, computers: bool) -> None:
    """Serve one account on a free port of 127.0.0.1, in its own session and with its own log, until the other end of the
    standard input is closed. So it never outlives the process that started it.

    `computers`: simulated nodes are behind its instances.
    """
    os.setsid()
    line = Connection(os.dup(0))
    empty, log = os.open(os.devnull, os.O_RDONLY), os.open(f"{folder}/{LOG}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream, file in enumerate((empty, log, log)):
        os.dup2(file, stream)
    mock_random.seed()  # moto's random numbers would be the same in every fork, so that accounts would share ids
    state = State(folder=Path(folder))
    patches.install(state)
    standing = SimulatedComputers(state) if computers else None
    state.computers = standing
    server = make_server("127.0.0.1", 0, Gate(state), threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    line.send(server.server_port)
    with contextlib.suppress(EOFError):
        line.recv()
    state.faults.clear()
    server.server_close()
    if standing is not None:
        standing.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # at once: freeing moto's state piece by piece would take seconds
