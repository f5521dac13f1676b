"""Instance metadata as EC2 gives it, version 2 alone: a token by PUT, and nothing to whoever shows none.

Source: the EC2 User Guide, "Use the Instance Metadata Service to access instance metadata". Machines reach it at
169.254.169.254 through QEMU, which starts `python metadata.py PORT` for each connection and talks to its standard streams.
"""

from __future__ import annotations

import http.server
import json
import os
import secrets
import socket
import sys
import threading
from collections.abc import Mapping
from typing import Any, Self

VERSIONS = {"latest", "2021-03-23", "2018-09-24", "2016-09-02", "2009-04-04"}
ADDRESS = "169.254.169.254"
_TTL, _TOKEN = "X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token"


class Metadata(http.server.ThreadingHTTPServer):
    """The service on a loopback port of its own, for as long as the block lasts.

    `leaves` is what it knows of the instance that asks, by path. `requests` lists method, path and status of each request.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.leaves: Mapping[str, bytes] = {}
        self.tokens: set[str] = set()
        self.requests: list[tuple[str, str, int]] = []
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def look_up(self, path: str) -> bytes | None:
        """What stands at a path below the version: a value, or the names below it. None where there is nothing."""
        if path in self.leaves:
            return self.leaves[path]
        start = f"{path}/" if path else ""
        names = {name[len(start) :].split("/")[0] for name in self.leaves if name.startswith(start)}
        marked = sorted(
            f"{name}/" if any(leaf.startswith(f"{start}{name}/") for leaf in self.leaves) else name for name in names
        )
        return "\n".join(marked).encode() or None


class _Answer(http.server.BaseHTTPRequestHandler):
    server: Metadata

    def do_PUT(self) -> None:
        ttl = self.headers.get(_TTL, "")
        if "X-Forwarded-For" in self.headers:
            self._answer(403)
        elif self.path != "/latest/api/token":
            self._answer(404)
        elif not ttl.isdigit() or not 1 <= int(ttl) <= 21600:
            self._answer(400)
        else:
            token = secrets.token_hex(16)
            self.server.tokens.add(token)
            self._answer(200, token.encode())

    def do_GET(self) -> None:
        version, _, path = self.path.strip("/").partition("/")
        if self.headers.get(_TOKEN) not in self.server.tokens:
            self._answer(401)
        elif version not in VERSIONS or (body := self.server.look_up(path)) is None:
            self._answer(404)
        else:
            self._answer(200, body)

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.server.requests.append((self.command, self.path, status))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name that http.server gives it
        """Nothing: `requests` has it."""


def describe_instance(*, instance: str, address: str, mac: str, public_key: str, user_data: bytes) -> dict[str, bytes]:
    """What the service knows of one instance."""
    name = f"ip-{address.replace('.', '-')}.us-east-2.compute.internal"
    zone = {"region": "us-east-2", "availabilityZone": "us-east-2a"}
    interface = f"network/interfaces/macs/{mac}"
    told = {
        "ami-id": "ami-0123456789abcdef0",
        "hostname": name,
        "instance-id": instance,
        "instance-type": "g4dn.xlarge",
        "local-hostname": name,
        "local-ipv4": address,
        "mac": mac,
        f"{interface}/device-number": "0",
        f"{interface}/local-ipv4s": address,
        f"{interface}/mac": mac,
        "placement/availability-zone": zone["availabilityZone"],
        "placement/region": zone["region"],
        "public-keys": "0=gpucourse",
        "public-keys/0/openssh-key": public_key,
    }
    document = json.dumps({**zone, "instanceId": instance, "privateIp": address})
    return {
        **{f"meta-data/{path}": text.encode() for path, text in told.items()},
        "dynamic/instance-identity/document": document.encode(),
        "user-data": user_data,
    }


def main() -> None:
    """Carry one connection: from standard input to the service, and its answer back."""
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as service:
        threading.Thread(target=_carry_up, args=(service,), daemon=True).start()
        while data := service.recv(1 << 16):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()


def _carry_up(service: socket.socket) -> None:
    while data := os.read(0, 1 << 16):
        service.sendall(data)
    service.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main()
