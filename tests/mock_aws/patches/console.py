"""The console output of an instance while it boots, with its public host key."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.core.types import Base64EncodedString
from moto.core.utils import utcnow
from moto.ec2.responses.general import General

from tests.mock_aws.state import State

_BOOTED = """\
[    4.118214] cloud-init[612]: Cloud-init v. 26.1 running 'init' at Sat, 21 Nov 2026 02:45:03 +0000. Up 4.10 seconds.
-----BEGIN SSH HOST KEY KEYS-----
{key} root@{name}
-----END SSH HOST KEY KEYS-----
[    9.551770] cloud-init[701]: Cloud-init v. 26.1 finished at Sat, 21 Nov 2026 02:45:09 +0000. Datasource DataSourceEc2Local.
"""


def install(state: State) -> None:
    """Show the host key once the computer behind an instance has booted, and no output before. moto shows a text from 2010."""

    def get_console_output(self: Any) -> ActionResult:
        instance = self.ec2_backend.get_instance(self._get_param("InstanceId"))
        key = state.computers.host_key(instance.id) if state.computers else None
        text = _BOOTED.format(key=key, name=instance.private_dns_name.partition(".")[0]) if key else ""
        return ActionResult(
            {"InstanceId": instance.id, "Timestamp": utcnow(), "Output": Base64EncodedString.from_raw_string(text)}
        )

    General.get_console_output = get_console_output  # type: ignore[method-assign]
