"""Keep torch's rendezvous on loopback, on a simulated node whose address is a loopback address.

torch's TCPStore listens on every address of the computer, whatever host name it is given, and torchrun has no option to change
that. But TCPStore accepts a socket that is already bound, so the rank that serves the store passes such a socket to it.

torch loads this module itself, through the entry point `torch.backends` next to it. This is how torch is extended without a
change to the script: https://docs.pytorch.org/tutorials/unstable/python_extension_autoload.html
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import sys
from typing import Any

MODULES = ("torch._C._distributed_c10d", "torch.distributed", "torch.distributed.rendezvous")


def keep_on_loopback() -> None:
    """Replace torch's TCPStore with one that listens only on loopback, in every module that has already imported it."""
    distributed = sys.modules.get("torch.distributed")
    original = getattr(distributed, "TCPStore", None)
    if original is None:  # a build of torch without torch.distributed
        return
    replacement = _loopback_store(original)
    for name in MODULES:
        module: Any = sys.modules.get(name)
        if getattr(module, "TCPStore", None) is original:
            module.TCPStore = replacement


def _loopback_store(original: Any) -> type:
    served: set[int] = set()  # ports of this process, at which torch itself finds the server of an earlier store

    def __init__(  # noqa: N807 - it becomes the method of the class below; the parameters are TCPStore's own
        self: Any,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        *arguments: Any,
        **options: Any,
    ) -> None:
        if is_master and options.get("master_listen_fd") is None and (address := _loopback(host_name)):
            listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((address, port))
            except OSError as error:
                listener.close()
                if port not in served:
                    raise _bind_error(port, error) from error
            else:
                port = listener.getsockname()[1]
                served.add(port)
                options["master_listen_fd"] = listener.detach()
        original.__init__(self, host_name, port, world_size, is_master, *arguments, **options)

    return type("TCPStore", (original,), {"__init__": __init__, "__doc__": original.__doc__, "__module__": original.__module__})


def _loopback(host_name: str) -> str:
    """Return the loopback address of the name, preferably IPv4. Return an empty string for another computer's name or an
    unknown name."""
    try:
        infos = socket.getaddrinfo(host_name, None, type=socket.SOCK_STREAM)
    except OSError:
        return ""  # torch reports what is wrong with the name
    addresses = [str(info[4][0]) for info in sorted(infos, key=lambda info: info[0] != socket.AF_INET)]
    return addresses[0] if all(ipaddress.ip_address(address).is_loopback for address in addresses) else ""


def _bind_error(port: int, error: OSError) -> Exception:
    """Return torch's error for a port in use, in torch's own words, because people search for them."""
    words = (
        f"The server socket has failed to listen on any local network address. port: {port}, useIpv6: false, "
        f"code: -{error.errno}, name: {errno.errorcode.get(error.errno or 0, 'UNKNOWN')}, message: {error.strerror}"
    )
    distributed: Any = sys.modules["torch.distributed"]
    network_error: Exception = distributed.DistNetworkError(words)
    return network_error
