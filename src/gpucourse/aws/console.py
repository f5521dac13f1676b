"""The host key of a node, from what the instance printed while it booted: AWS authenticates it, so SSH can pin it."""

from __future__ import annotations

import base64
import binascii
import re
import time
from collections.abc import Callable

from gpucourse.aws.session import Account
from gpucourse.errors import CloudError

BEGIN, END = "-----BEGIN SSH HOST KEY KEYS-----", "-----END SSH HOST KEY KEYS-----"
POLL_S = 5.0
PASSING = frozenset({"throttle", "service", "gone"})
"""Errors that may be gone at the next request: too many requests, a fault of AWS, an instance that is not listed yet."""
_KEY = re.compile(r"(ssh-ed25519|ecdsa-sha2-nistp256|ssh-rsa) ([A-Za-z0-9+/]{60,}={0,2})(?=\s|$)")
_FIELDS = {"ssh-ed25519": 2, "ecdsa-sha2-nistp256": 3, "ssh-rsa": 3}  # RFC 8709, 5656 and 4253: with the type as the first
_PREFERENCE = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa")


def host_keys(text: str) -> dict[str, str]:
    """Return the public host keys in a console's text, by type (`ssh-ed25519`), each as `type base64`; from the last boot."""
    inside = text.rpartition(BEGIN)[2].partition(END) if BEGIN in text else ("", "", "")
    if not inside[1]:  # the block is not complete yet
        return {}
    return {match[1]: f"{match[1]} {match[2]}" for match in _KEY.finditer(inside[0]) if _is_whole(match[1], match[2])}


def output(account: Account, instance: str) -> str:
    """Return what the instance has printed so far: the newest output if AWS has it, else an older one. May be empty."""
    try:
        return str(account.call("ec2", "get_console_output", InstanceId=instance, Latest=True).get("Output", ""))
    except CloudError as error:
        if error.kind not in {"parameter", "zone"}:  # not a Nitro instance: only the older output is available
            raise
        return str(account.call("ec2", "get_console_output", InstanceId=instance).get("Output", ""))


def host_key(
    account: Account,
    instance: str,
    *,
    timeout_s: float = 900.0,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> str | None:
    """Return the instance's public SSH key (`ssh-ed25519 AAAA...`) as its console shows it; None if it does not in time.

    None means that the key is not authenticated: warn before trusting the key that the network shows. Temporary errors of AWS
    are retried; if the last answer is one, it is raised. Every other error is raised at once.
    """
    deadline = clock() + timeout_s
    while True:
        trouble: CloudError | None = None
        try:
            keys = host_keys(output(account, instance))
        except CloudError as error:
            if error.kind not in PASSING:
                raise
            keys, trouble = {}, error
        if keys:
            return next(keys[kind] for kind in _PREFERENCE if kind in keys)
        if clock() >= deadline:
            if trouble is not None:
                raise trouble
            return None
        sleep(POLL_S)


def _is_whole(kind: str, text: str) -> bool:
    """Return whether the base64 text is a complete public key of that type (RFC 4253, 6.6): a kernel message in the middle of
    it leaves a shorter one."""
    try:
        blob = base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    fields: list[bytes] = []
    while blob:
        length = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + length:
            return False
        fields.append(blob[4 : 4 + length])
        blob = blob[4 + length :]
    return len(fields) == _FIELDS[kind] and fields[0] == kind.encode()
