"""The host key of a node, from what the instance printed while it booted: AWS vouches for it, so SSH can pin it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from gpucourse.aws.session import Account
from gpucourse.errors import CloudError

BEGIN, END = "-----BEGIN SSH HOST KEY KEYS-----", "-----END SSH HOST KEY KEYS-----"
POLL_S = 5.0
_KEY = re.compile(r"(ssh-ed25519|ecdsa-sha2-nistp256|ssh-rsa) ([A-Za-z0-9+/]{60,}={0,2})")
_PREFERENCE = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa")


def host_keys(text: str) -> dict[str, str]:
    """The public host keys in a console's text, by type (`ssh-ed25519`), each as `type base64`; from the last boot."""
    inside = text.rpartition(BEGIN)[2].partition(END) if BEGIN in text else ("", "", "")
    if not inside[1]:  # the block has not been printed to its end yet
        return {}
    return {match[1]: f"{match[1]} {match[2]}" for match in _KEY.finditer(inside[0])}


def output(account: Account, instance: str) -> str:
    """What the instance has printed so far: its newest output where AWS gives that, else what it gives. May be empty."""
    try:
        return str(account.call("ec2", "get_console_output", InstanceId=instance, Latest=True).get("Output", ""))
    except CloudError as error:
        if error.kind not in {"parameter", "zone"}:  # not a Nitro instance: only the older output can be had
            raise
        return str(account.call("ec2", "get_console_output", InstanceId=instance).get("Output", ""))


def host_key(
    account: Account,
    instance: str,
    *,
    timeout_s: float = 300.0,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> str | None:
    """The instance's public SSH key (`ssh-ed25519 AAAA...`) as its console shows it; None where it does not in time.

    None means that nobody vouches for the key: say so before trusting what the network shows.
    """
    deadline = clock() + timeout_s
    while True:
        keys = host_keys(output(account, instance))
        if keys:
            return next(keys[kind] for kind in _PREFERENCE if kind in keys)
        if clock() >= deadline:
            return None
        sleep(POLL_S)
