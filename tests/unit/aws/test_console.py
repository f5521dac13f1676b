from __future__ import annotations

from typing import Any

import pytest

from gpucourse.aws import console
from gpucourse.errors import CloudError
from tests.unit.aws.cloud import Clock, ScriptedAccount, error, make_host_key

ED, OTHER = (make_host_key("ssh-ed25519", bytes([first]) * 32) for first in (7, 9))
RSA = make_host_key("ssh-rsa", b"\1\0\1", bytes(257))
KERNEL = "[   12.345678] audit: type=1400 apparmor=STATUS"
FINGERPRINTS = """\
<14>Nov 21 cloud-init: -----BEGIN SSH HOST KEY FINGERPRINTS-----
<14>Nov 21 cloud-init: 256 SHA256:abcdefg root@ip-10-77-1-4 (ED25519)
<14>Nov 21 cloud-init: -----END SSH HOST KEY FINGERPRINTS-----
"""


def block(*keys: str, end: bool = True) -> str:
    lines = [console.BEGIN, *(f"{key} root@ip-10-77-1-4" for key in keys), *([console.END] if end else [])]
    return FINGERPRINTS + "\r\n".join(lines) + "\r\n[   20.1] cloud-init finished\r\n"


@pytest.mark.parametrize(
    "text",
    [
        block(RSA, ED),
        f"<14>ci: {console.BEGIN}\n<14>ci: {ED} root@x\n<14>ci: {console.END}\n",
        f"a learner typed: {OTHER} me@home\n" + block(ED),
        block(OTHER) + block(ED),
    ],
    ids=["among others", "with the prefix of the system log", "none outside of the block", "of the last boot"],
)
def test_find_key(text: str) -> None:
    assert console.find_key(text) == ED


@pytest.mark.parametrize(
    "text", ["", "Linux version 6.17", FINGERPRINTS, block(ED, end=False), f"{console.BEGIN}\n{console.END}\n"]
)
def test_find_key_is_none_before_the_block_is_whole(text: str) -> None:
    assert console.find_key(text) is None


@pytest.mark.parametrize("at", [20, 64, 79])
def test_find_key_ignores_a_key_that_the_kernel_wrote_into(at: int) -> None:
    mixed = f"{ED[:at]}{KERNEL}\r\n{ED[at:]}"
    assert console.find_key(block(mixed)) is None
    assert console.find_key(block(mixed) + block(ED)) == ED


def account(outputs: list[Any]) -> ScriptedAccount:
    def answer(_parameters: dict[str, Any]) -> Any:
        output = outputs.pop(0) if len(outputs) > 1 else outputs[0]
        return output if isinstance(output, Exception) else {"InstanceId": "i-1", "Output": output}

    return ScriptedAccount({("ec2", "get_console_output"): answer})


def test_host_key_waits_for_the_keys() -> None:
    clock = Clock()
    scripted_account = account(["", "booting", block(RSA, ED)])
    assert console.host_key(scripted_account, "i-1", sleep=clock.sleep, clock=clock) == ED
    assert clock.now == 2 * console.POLL_S
    assert scripted_account.list_calls("get_console_output")[0] == {"InstanceId": "i-1", "Latest": True}
    assert console.host_key(account(["booting"]), "i-1", timeout_s=30, sleep=clock.sleep, clock=clock) is None


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "InvalidInstanceID.NotFound"])
def test_host_key_waits_out_an_error_that_passes(code: str) -> None:
    clock = Clock()
    scripted = account([error(code), "", error(code), block(ED)])
    assert console.host_key(scripted, "i-1", sleep=clock.sleep, clock=clock) == ED
    with pytest.raises(CloudError) as caught:
        console.host_key(account([error(code)]), "i-1", sleep=clock.sleep, clock=clock)
    assert caught.value.cloud_code == code
