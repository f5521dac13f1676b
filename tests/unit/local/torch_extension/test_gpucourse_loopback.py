"""The extension that keeps torch's rendezvous on loopback, with a torch that a test writes."""

from __future__ import annotations

import importlib.util
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gpucourse.local import layout

FILE = Path(layout.__file__).parent / "torch_extension/gpucourse_loopback.py"


class TCPStore:
    """The part of torch's store that the extension uses."""

    def __init__(self, _host: str, port: int, _size: int, _is_master: bool, master_listen_fd: int | None = None) -> None:
        self.port, self.handle = port, master_listen_fd


class DistNetworkError(Exception):
    """torch's error for a port in use."""


@pytest.fixture
def distributed(monkeypatch: pytest.MonkeyPatch) -> Any:
    module: Any = ModuleType("torch.distributed")
    module.TCPStore, module.DistNetworkError = TCPStore, DistNetworkError
    monkeypatch.setitem(sys.modules, module.__name__, module)
    spec = importlib.util.spec_from_file_location("gpucourse_loopback", FILE)
    assert spec is not None
    assert spec.loader is not None
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    extension.keep_on_loopback()
    return module


def test_keep_on_loopback_listens_for_the_store_of_a_master_on_loopback(distributed: Any) -> None:
    store = distributed.TCPStore("127.0.0.1", 0, 2, True)
    with socket.socket(fileno=store.handle) as listener:
        assert listener.getsockname() == ("127.0.0.1", store.port)
        listener.listen()
        assert distributed.TCPStore("127.0.0.1", store.port, 2, True).handle is None, "torch finds its own server"
    assert distributed.TCPStore("127.0.0.1", 0, 2, False).handle is None
    assert distributed.TCPStore("203.0.113.1", 0, 2, True).handle is None, "another computer"


def test_keep_on_loopback_raises_the_error_of_torch_for_a_port_in_use(distributed: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(DistNetworkError, match=f"port: {port}, .*EADDRINUSE"):
            distributed.TCPStore("127.0.0.1", port, 2, True)
