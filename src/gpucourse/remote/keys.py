"""Make the workspace's SSH key, the nodes' known host keys, and the files that let plain `ssh`, `scp`, `rsync` and editors
reach the nodes."""

from __future__ import annotations

import base64
from hashlib import sha256
from pathlib import Path

from gpucourse.errors import MissingError, OtherHostKey, UnreachableError
from gpucourse.model.node import Inventory, Node
from gpucourse.storage import storing, write_bytes, write_text
from gpucourse.workspace.lock import hold_lock


def ensure_client_key(path: Path) -> str:
    """Return the public key (`ssh-ed25519 AAAA... gpucourse`) of the private key at `path`. If there is no key, make one.

    Commands that run at the same time get the same key. Only the owner can read the private key.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        with hold_lock(path.with_name(f".{path.name}.lock"), "making the SSH key"):
            if not path.exists():  # unless another command has made one in the meantime
                form, secret = serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
                new = ed25519.Ed25519PrivateKey.generate()
                write_bytes(path, new.private_bytes(serialization.Encoding.PEM, form, secret), mode=0o600)
    try:
        with storing(path):
            path.chmod(0o600)
            key = serialization.load_ssh_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _make_damaged_error(path, str(error)) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise _make_damaged_error(path, "it is not an Ed25519 key")
    encoded = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    line = f"{encoded.decode()} gpucourse"
    public = path.with_name(path.name + ".pub")
    if not public.exists() or public.read_text(encoding="utf-8").strip() != line:
        write_text(public, line + "\n")
    return line


def known_hosts(inventory: Inventory) -> str:
    """Return the pinned host keys of these nodes, in OpenSSH's format."""
    pinned = ((node, key) for node in inventory.nodes for key in (node.host_key, *node.other_host_keys) if key)
    return "".join(f"[{node.address}]:{node.port} {key}\n" for node, key in pinned)


def ssh_config(inventory: Inventory, key: Path, known_hosts_file: Path, prefix: str = "") -> str:
    """Return an OpenSSH configuration with two names for each node: its own name with the prefix, and
    `gpucourse-<stack>-<name>`."""
    hosts = [
        _host(f"{prefix}{node.name} gpucourse-{inventory.stack}-{node.name}", node, key, known_hosts_file)
        for node in inventory.nodes
    ]
    return "\n".join(hosts)


def ssh_hosts(inventory: Inventory, key: Path, known_hosts_file: Path) -> str:
    """Return host entries for a configuration that also lists other machines.

    Each node also has the name `gpucourse-<module>-<name>`, which is not unique if a module has two labs.
    """
    number = inventory.stack.partition("-")[0]
    module = str(int(number)) if number.isdecimal() else number
    return ssh_config(inventory, key, known_hosts_file, f"gpucourse-{module}-")


def parse_pinned_keys(node: Node) -> list[tuple[str, str]]:
    """Return the pinned host keys of a node, each as (kind, base64). The node must present one of them. Raises UnreachableError
    if none is recorded."""
    parts = [key.split() for key in (node.host_key, *node.other_host_keys)]
    if len(parts[0]) < 2:
        raise UnreachableError(
            f"{node.label}: no host key is on record, so the machine that answers cannot be verified",
            hint="type gpucourse deploy again: it records the host key of each node",
        )
    return [(key[0], key[1]) for key in parts]


def make_other_key_error(node: Node, server_key: str) -> OtherHostKey:
    """Return the error for a machine whose host key is not the recorded one. `server_key` is the fingerprint of the machine's
    key."""
    try:
        fingerprints = " or ".join(fingerprint(base64.b64decode(key)) for _kind, key in parse_pinned_keys(node))
    except ValueError:
        fingerprints = "an unreadable key"
    return OtherHostKey(
        f"{node.label}: the machine at {node.address}:{node.port} shows a different host key ({server_key}) from the one on "
        f"record ({fingerprints}); nothing was sent to it",
        hint="if the node was rebuilt, type gpucourse deploy again; otherwise another machine answers at this address",
    )


def _host(names: str, node: Node, key: Path, known_hosts_file: Path) -> str:
    lines = {
        "HostName": node.address,
        "Port": str(node.port),
        "User": node.user,
        "HostKeyAlias": f"[{node.address}]:{node.port}",
        "IdentityFile": _file(Path(node.key) if node.key else key),
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "PreferredAuthentications": "publickey",
        "UserKnownHostsFile": _file(known_hosts_file),
        "GlobalKnownHostsFile": "none",
        "StrictHostKeyChecking": "yes",
        "UpdateHostKeys": "no",
        "ForwardAgent": "no",
        "ServerAliveInterval": "15",
    }
    if node.proxy:
        lines["ProxyCommand"] = node.proxy
    body = "".join(f"    {name} {value}\n" for name, value in lines.items())
    return f"Host {names}\n{body}"


def _file(path: Path) -> str:
    """Return a file name in OpenSSH's notation: in quotes, with quotes and backslashes escaped, and with `%` doubled.

    OpenSSH's notation has no way to write a path that contains `${`, where OpenSSH always looks up a variable.
    """
    text = str(path).replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _make_damaged_error(path: Path, reason: str) -> MissingError:
    return MissingError(
        f"the private key {path} cannot be used: {reason}",
        hint=f"move it away (mv '{path}' '{path}.damaged'), then type gpucourse deploy again: it makes a new one",
    )


def fingerprint(blob: bytes) -> str:
    """Return the SHA256 fingerprint of a public key, in OpenSSH's notation."""
    return "SHA256:" + base64.b64encode(sha256(blob).digest()).decode().rstrip("=")
