"""The subnet of a VPC: machines under QEMU reach each other and their gateways, and nothing outside.

A gateway is QEMU's own user network: DHCP, the metadata service, the port of this computer for the machine's SSH. It answers to
whatever it sees, so frames of one machine for another must never pass it: each frame comes here, by UDP on loopback.
"""

from __future__ import annotations

import shlex
import socket
import sys
import threading
from typing import Self

from tests.boot import metadata
from tests.ports import take_port

SUBNET = "169.254.169.0/24"
_FIRST = 15
_ARP = b"\x08\x06"


def address(number: int) -> str:
    """The address of a machine by its number in the subnet, from 0."""
    return f"169.254.169.{_FIRST + number}"


def mac(number: int) -> str:
    """The hardware address of a machine's network card."""
    return f"52:54:00:77:01:{_FIRST + number:02x}"


class Wire:
    """One subnet, for as long as the block lasts."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._cards: dict[bytes, int] = {}
        self._ends: dict[int, int] = {}  # port of a card: that of its gateway, and back
        self._thread = threading.Thread(target=self._carry, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def join(self, number: int, *, metadata_port: int, ssh: int) -> list[str]:
        """What QEMU is told, so that the network of the machine is `nic`. `ssh`: the port of this computer for its SSH."""
        card, gateway = take_port(), take_port()
        self._cards[bytes.fromhex(mac(number).replace(":", ""))] = card
        self._ends |= {card: gateway, gateway: card}
        forward = shlex.join([sys.executable, "-I", metadata.__file__, str(metadata_port)]).replace(",", ",,")
        words = [f"net={SUBNET}", "host=169.254.169.2", "dns=169.254.169.3", f"dhcpstart={address(number)}", "restrict=on"]
        words += [f"guestfwd=tcp:{metadata.ADDRESS}:80-cmd:{forward}", f"hostfwd=tcp:127.0.0.1:{ssh}-{address(number)}:22"]
        here = f"udp=127.0.0.1:{self._socket.getsockname()[1]}"
        network = [f"user,id=user,{','.join(words)}", f"socket,id=up,{here},localaddr=127.0.0.1:{gateway}"]
        network += ["hubport,id=a,hubid=0,netdev=user", "hubport,id=b,hubid=0,netdev=up"]
        network += [f"socket,id=nic,{here},localaddr=127.0.0.1:{card}"]
        return [word for netdev in network for word in ("-netdev", netdev)]

    def _carry(self) -> None:
        while True:
            frame, (_, port) = self._socket.recvfrom(1 << 16)
            if not frame:
                return
            for goal in self._goals(frame, port):
                self._socket.sendto(frame, ("127.0.0.1", goal))

    def _goals(self, frame: bytes, port: int) -> list[int]:
        """Where a frame goes that came from a card or from a gateway. What is for all goes to the machine's own gateway alone,
        which leases its address; by ARP another machine may be asked for as well."""
        if port in self._cards.values():
            if frame[:6] in self._cards:
                return [self._cards[frame[:6]]]
            if frame[12:14] == _ARP:
                return [self._ends[port], *(card for card in self._cards.values() if card != port)]
        return [self._ends[port]]
