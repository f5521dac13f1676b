"""The host key of a node, taken from the instance's console output while it boots.

AWS authenticates this output, so SSH can pin the key.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from gpucourse.aws.session import Account
from gpucourse.errors import CloudError

BEGIN, END = "-----BEGIN SSH HOST KEY KEYS-----", "-----END SSH HOST KEY KEYS-----"
POLL_S = 5.0
PASSING = frozenset({"throttle", "service", "gone"})
"""The kinds of errors that may disappear on a retry: too many requests, a fault of AWS, an instance that is not listed yet."""
# A key has 51 bytes (RFC 8709), and all keys begin with the same 19. So a line that the kernel wrote into does not match.
_KEY = re.compile(r"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI[A-Za-z0-9+/]{43}(?=\s|$)")


def find_key(text: str) -> str | None:
    """Return the public host key of the last boot in a console's text, as `ssh-ed25519 base64`.

    Return None if the block of keys from that boot is not complete yet.
    """
    _earlier, begin, remainder = text.rpartition(BEGIN)
    block, end, _tail = remainder.partition(END)
    match = _KEY.search(block) if begin and end else None
    return match.group() if match else None


def output(account: Account, instance: str) -> str:
    """Return the newest console output of the instance. It may be empty."""
    return str(account.call("ec2", "get_console_output", InstanceId=instance, Latest=True).get("Output", ""))


def host_key(
    account: Account,
    instance: str,
    *,
    timeout_s: float = 900.0,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> str | None:
    """Return the public host key of the instance (`ssh-ed25519 AAAA...`) from its console; None if it does not appear in time.

    None means that the key is not authenticated: warn before trusting the key that a connection shows. Temporary errors of AWS
    are retried; if the last answer is such an error, it is raised. Every other error is raised immediately.
    """
    deadline = clock() + timeout_s
    while True:
        trouble: CloudError | None = None
        try:
            key = find_key(output(account, instance))
        except CloudError as error:
            if error.kind not in PASSING:
                raise
            key, trouble = None, error
        if key:
            return key
        if clock() >= deadline:
            if trouble is not None:
                raise trouble
            return None
        sleep(POLL_S)
