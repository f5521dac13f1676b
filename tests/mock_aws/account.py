"""The test's side of a mock account: start it, disturb it, inspect it, end it."""

from __future__ import annotations

import http.client
import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gpucourse.local import health
from tests.mock_aws import recorded
from tests.mock_aws.permissions import ADMINISTRATOR
from tests.mock_aws.process import AccountProcess
from tests.parts import need_module
from tests.waiting import until

PROXY = Path(__file__).with_name("ssh_proxy.py")
REGION = "us-east-2"
KEY_ID = "AKIAMOCKMOCKMOCKMOCK"
ANSWER_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource in the account that costs money, or that a caller created."""

    kind: str
    id: str
    region: str
    tags: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} {self.id} ({self.region})"


@dataclass(frozen=True, kw_only=True)
class Made:
    """A call that reached the account, and its answer. `code` is empty if the call succeeded."""

    at: float
    service: str
    action: str
    region: str
    params: Mapping[str, Any]
    status: int
    code: str
    invocation: str = ""


@dataclass
class Account:
    """One mock account, which exists for the duration of a test."""

    folder: Path
    port: int
    region: str

    def __post_init__(self) -> None:
        self._clients = cache(self._new_client)

    # Access

    @property
    def endpoint(self) -> str:
        """Return the address at which it answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that direct Terraform's provider and boto3 to this account only."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": "mock",
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": str(self.folder / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(self.folder / "credentials"),
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }

    @property
    def proxy_command(self) -> str:
        """Return a command for `ssh -o ProxyCommand`. `%h` and `%p` are the instance's address and port."""
        words = [sys.executable, "-I", "-S", str(PROXY), str(self.folder / "addresses.json")]
        return f"{shlex.join(words)} %h %p"

    def client(self, service: str, region: str = "") -> Any:
        """Return a boto3 client that sends each request once and then reports the error."""
        return self._clients(service, region or self.region)

    # Disturbances

    def fail(self, action: str, code: str, **conditions: Any) -> None:
        """Let calls fail with an error of the API.

        `conditions`: as in `faults.Rule`: zone, nth, times, and `after` for a call that takes effect although its answer is an
        error.
        """
        self._ask("rule", action=action, effect="fail", code=code, **conditions)

    def hold(self, action: str, **conditions: Any) -> None:
        """Hold calls back until `release`. With `after=True`, they have taken effect, and only their answers are held back."""
        self._ask("rule", action=action, effect="hold", **conditions)

    def list_held_calls(self) -> list[str]:
        """Return the calls that are held back at the moment."""
        return list(self._ask("held"))

    def release(self) -> None:
        """Let all calls continue that are held back, and hold back no more."""
        self._ask("release")

    def deny(self, *actions: str) -> None:
        """Deny these permissions, such as `ec2:RunInstances` or `pricing:*`."""
        self._ask("deny", actions=list(actions))

    def expire_credentials(self, *, action: str = "") -> None:
        """Let the credentials expire: now, or after the next call of that action."""
        self._ask("expire", after=action)

    def renew_credentials(self) -> None:
        """Accept the credentials again."""
        self._ask("renew")

    def calm(self) -> None:
        """Remove all disturbances."""
        self._ask("clear")

    # State of the account

    def quota(self, code: str, value: float) -> None:
        """Set a limit in vCPUs, in every region."""
        self._ask("quota", code=code, value=value)

    def plan(self, kind: str) -> None:
        """Set the account's plan to FREE or PAID."""
        self._ask("plan", kind=kind)

    def shut_down(self, instance_id: str) -> None:
        """Power the machine off, as its deadline timer would."""
        self._ask("end-instance", instance_id=instance_id, cause="shutdown")

    def interrupt(self, instance_id: str) -> None:
        """Terminate the machine, as the spot market does."""
        self._ask("end-instance", instance_id=instance_id, cause="spot")

    # Inspection

    def resources(self, *kinds: str) -> list[Resource]:
        """Return everything that still exists, or only resources of these kinds. Without resources, nothing costs money."""
        resources = (Resource(**fields) for fields in self._ask("resources"))
        return [resource for resource in resources if not kinds or resource.kind in kinds]

    def calls(self, action: str = "") -> list[Made]:
        """Return every call so far, or only the calls of one action."""
        file = self.folder / "calls.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        entries = (Made(**json.loads(line)) for line in lines)
        return [call for call in entries if action in {"", call.action}]

    def list_refused(self) -> list[str]:
        """Return what the course's policy has refused so far, as `action on resource`, without actions that only an
        administrator takes.
        """
        return recorded.list_refused(self.folder)

    def list_unimplemented_calls(self) -> list[str]:
        """Return the calls that the mock does not implement."""
        file = self.folder / "unimplemented.log"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def computers(self) -> dict[str, dict[str, Any]]:
        """Return the node behind each instance that has booted, by instance id: host, port, host_key, home, root."""
        return dict(self._ask("computers"))

    def computer(self, instance_id: str) -> dict[str, Any]:
        """Return the node behind one instance. Wait while it boots."""
        until(lambda: instance_id in self.computers(), f"{instance_id} boots")
        return self.computers()[instance_id]

    def _new_client(self, service: str, region: str) -> Any:
        config = need_module("botocore.config").Config(retries={"total_max_attempts": 1, "mode": "standard"})
        return need_module("boto3").client(
            service,
            region_name=region,
            endpoint_url=self.endpoint,
            aws_access_key_id=ADMINISTRATOR,
            aws_secret_access_key="mock",
            config=config,
        )

    def _ask(self, verb: str, **request: Any) -> Any:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        try:
            line.request("POST", f"/mock/{verb}", json.dumps(request), {"Content-Type": "application/json"})
            answer = line.getresponse()
            reply = json.loads(answer.read())
        finally:
            line.close()
        if answer.status != 200:
            raise ValueError(reply)
        return reply


@contextmanager
def mock_account(
    folder: Path,
    *,
    computers: bool = False,
) -> Iterator[Account]:
    """Yield an empty account on the paid plan, in a process of its own, whose logs are in `folder`.

    `computers`: whether a simulated node is behind each instance, which answers SSH through `proxy_command`. Fails at the end
    if a call is not implemented by the mock.
    """
    need_module("moto.server")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config", "credentials"):
        (folder / name).touch()
    process = AccountProcess(folder, computers=computers)
    try:
        account = Account(folder=folder, port=process.port, region=REGION)
        yield account
    finally:
        process.end()
        uid = folder / "uid"  # the computers behind its instances end in any case
        if uid.exists():
            health.end_everything(folder / "nodes", uid.read_text(encoding="utf-8"))
    recorded.add(folder)
    assert not account.list_unimplemented_calls(), account.list_unimplemented_calls()
