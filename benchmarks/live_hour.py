"""Spend one hour with a real AWS account, to test what no mock account can show: `python -m benchmarks.live_hour --max-usd 3`.

The program types gpucourse commands: it deploys two labs of one GPU instance, one after the other, examines each and takes it
down, and finally searches for leftovers. It records every command and its answer in `live-hour/evidence.json` of the workspace,
without private data. docs/live-hour.md explains how the cost stays within the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from gpucourse.aws import instances, schedule, tags
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, GpucourseError
from gpucourse.workspace import deployments, settings
from gpucourse.workspace.locate import Workspace, find_root, open_workspace

STEP_S, TAKE_DOWN_S, PATIENCE_S = 2700.0, 900.0, 900.0
LAB_H = Decimal(2) * (1 + Decimal(schedule.AFTER.total_seconds()) / 3600)  # both labs, each until its backstop ends it
LEFT, STOPPED = 8, 130
SETTINGS = {"region", "ssh_cidr", "ssh_proxy_command", "node_python", "rendezvous_ports"}
DOCTOR = ("doctor", "--target", "aws", "--module", "8", "--gpu", "t4", "--json")
STEPS = (  # each with what a person should look at; the hour ends if a command other than `ssh` fails
    ((*DOCTOR, "--spot"), "no line says missing, for spot instances"),
    (("deploy", "1", "--target", "aws", "--no-spot", "--ttl", "1h", "--yes", "--json"), "seconds, host key, backstop"),
    (("ssh", "1", "--", "systemd-analyze"), "how long the boot took"),
    (("ssh", "1", "--", "nvidia-smi", "-L"), "the GPU and its driver are there"),
    (("ssh", "1", "--", "cat", "/var/lib/gpucourse/ready"), "what the first boot found"),
    (("destroy", "1", "--yes", "--discard", "--json"), "the seconds, and that nothing is left"),
    (
        ("deploy", "8", "--target", "aws", "--gpu", "t4", "--spot", "--ttl", "1h", "--yes", "--json"),
        "seconds, host key, backstop",
    ),
    (("ssh", "8", "--", "df", "-hT", "/shared"), "the shared storage is mounted"),
    (("destroy", "8", "--yes", "--discard", "--json"), "the seconds, and that nothing is left"),
)
PRIVATE = {"account", "address", "arn", "host_key", "owner", "Owner", "private_address", "proxy", "ssh_cidr", "user"}
SECRETS, PERSON = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"), ("HOME", "USER", "LOGNAME")
PATTERNS = (
    (r"(?s)-----BEGIN [^-]+-----.*?(?:-----END [^-]+-----|\Z)", "(key)"),
    (r"\b(?:ssh-\w+|ecdsa-sha2-\w+) AAAA\S+", "(public key)"),
    (r"\bSHA256:[\w+/=]{20,}", "(fingerprint)"),
    (r"\b(?:AKIA|ASIA|AIDA|AROA)[A-Z0-9]{12,}\b", "(key id)"),
    (r"\b(user|assumed-role|role|federated-user)/(?!aws-service-role|gpucourse)[^\s\"',;]+", r"\1/(name)"),
    (r"\b\d{4}-?\d{4}-?\d{4}\b", "(account)"),
    (r"\b(?:\d{1,3}\.){3}\d{1,3}\b", "(address)"),
    (r"\b(?:ip|ec2)(?:-\d{1,3}){4}\b", "(address)"),
    (r"[\w.+-]+@[\w-]+\.[\w.]+", "(mail)"),
)


@dataclass(kw_only=True)
class Hour:
    """The hour in its own workspace. `usd_per_hour` is the on-demand price of the more expensive lab, once it is known."""

    workspace: Workspace
    environ: Mapping[str, str]
    region: str
    max_usd: Decimal
    usd_per_hour: Decimal = Decimal(0)
    since: float | None = None
    outcome: str = "failed"
    steps: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.workspace.paths.root / "evidence.json"

    @property
    def usd(self) -> Decimal:
        """Return the most that the hour can have cost so far, in USD, as if one lab had existed since the first `deploy`."""
        spent_s = time.monotonic() - self.since if self.since is not None else 0.0
        return self.usd_per_hour * Decimal(spent_s) / 3600

    @property
    def remaining_s(self) -> float:
        """Return how many seconds a lab may still run before it has to be taken down."""
        return float((self.max_usd - self.usd) / self.usd_per_hour * 3600) - TAKE_DOWN_S if self.usd_per_hour else STEP_S

    def type(self, words: tuple[str, ...], look: str, limit_s: float = STEP_S) -> tuple[int, dict[str, Any]]:
        """Run a command and record its answer. Return its exit code and the document that it printed.

        `look`: what the command is to show, for the evidence. `limit_s`: the time limit.
        """
        print(f"gpucourse {' '.join(words)}", flush=True)
        step: dict[str, Any] = {"command": f"gpucourse {' '.join(words)}", "look_at": look, "code": STOPPED}
        self.steps.append(step)
        began = time.monotonic()
        code, out, err, in_time = run(words, self.environ, limit_s)
        document: dict[str, Any] = {}
        with suppress(ValueError):
            document = dict(json.loads(out))
        step |= {"code": code, "seconds": round(time.monotonic() - began, 1), "in_time": in_time, "err": err[-4000:]}
        step |= {"document": document} if document else {"out": out[-4000:]}
        self.write()
        return code, document

    def write(self) -> None:
        """Write the evidence so far, so that it is kept even if the program is killed."""
        evidence = {name: getattr(self, name) for name in ("region", "outcome", "steps", "facts", "left")}
        evidence |= {"usd_at_most": f"{self.usd:.2f}", "usd_agreed": f"{self.max_usd}"}
        self.file.touch(mode=0o600)
        self.file.write_text(json.dumps(scrub(evidence, self.environ), indent=2, default=str) + "\n", encoding="utf-8")


def run(words: tuple[str, ...], environ: Mapping[str, str], limit_s: float) -> tuple[int, str, str, bool]:
    """Run a command. Return its exit code, its output, its errors, and whether it ended in time.

    After the limit, or after Ctrl-C here, it receives a Ctrl-C and some time to finish, because Terraform must not be cut off.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "gpucourse", *words],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # a Ctrl-C at the terminal reaches it through this process, once
    )
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        out, err = interrupt(process)
        return process.returncode, out, err, False
    except KeyboardInterrupt:
        interrupt(process)
        raise
    return process.returncode, out, err, True


def interrupt(process: subprocess.Popen[str]) -> tuple[str, str]:
    before = signal.getsignal(signal.SIGINT)
    handle_signals(signal.SIG_IGN)
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()
    finally:
        handle_signals(before)


def handle_signals(handler: Any) -> None:
    """Handle Ctrl-C, SIGTERM and a closed terminal in the same way."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def scrub(value: Any, environ: Mapping[str, str]) -> Any:
    """Return the value without secrets, account numbers, addresses and names of people."""
    if isinstance(value, Mapping):
        return {
            str(scrub(key, environ)): "(left out)" if key in PRIVATE and item else scrub(item, environ)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [scrub(item, environ) for item in value]
    if not isinstance(value, str):
        return value
    text = hide(value, environ, SECRETS)  # first: a pattern would cut a secret into pieces
    for pattern, instead in PATTERNS:
        text = re.sub(pattern, instead, text)
    return hide(text, environ, PERSON)


def hide(text: str, environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        value = environ.get(name, "")
        if len(value) >= 3 and value not in {"root", "ubuntu"}:
            text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", f"({name})", text)
    return text


def read_facts(account: Account, course: str) -> dict[str, Any]:
    """Return what AWS reports about the existing lab. A mock account could only repeat what a test told it."""
    try:
        nodes = [node for node in instances.find(account, course=course) if node.alive]
        spot = [{"Name": "instance-id", "Values": [node.id for node in nodes if node.market == "spot"]}]
        requests = account.pages("ec2", "describe_spot_instance_requests", "SpotInstanceRequests", Filters=spot)
        return {
            "instances": [describe_instance(account, node.id, node.market) for node in nodes],
            "spot_requests": [
                {"type": request.get("Type"), "state": request.get("State"), "tags": tags.read(request)}
                for request in (requests if spot[0]["Values"] else ())
            ],
            "file_systems": [
                {"id": system["FileSystemId"], "state": system["LifeCycleState"]}
                for system in account.pages("efs", "describe_file_systems", "FileSystems")
                if tags.read(system).get("Course") == course
            ],
            "schedules": {
                name: str(end)
                for stack in {node.stack for node in nodes}
                for name, end in schedule.read_scheduled_ends(account, stack=stack).items()
            },
        }
    except GpucourseError as error:
        return {"error": error.what}


def describe_instance(account: Account, name: str, market: str) -> dict[str, Any]:
    """Return what ends an instance. For a spot instance, also return how EC2 responds to a request to change that, which AWS
    does not document.
    """
    answer = "not asked"
    if market == "spot":
        try:
            end = {"Value": "terminate"}
            account.call("ec2", "modify_instance_attribute", InstanceId=name, InstanceInitiatedShutdownBehavior=end)
            answer = "accepted"
        except CloudError as error:
            answer = f"{error.cloud_code}: {error.message}"
    return {
        "id": name,
        "market": market,
        "kept_when_it_powers_off": bool(instances.survive_power_off(account, [name])),
        "told_to_end_when_it_powers_off": answer,
        "characters_of_console": len(str(account.call("ec2", "get_console_output", InstanceId=name).get("Output", ""))),
    }


def prepare(max_usd: Decimal) -> Hour:
    """Create the workspace of the hour, with the learner's settings about the region and the connection."""
    root = find_root(None, os.environ)
    hour = open_workspace(root / "live-hour")
    paths = hour.paths
    if stacks := [deployment.stack for deployment in deployments.every(paths)]:
        take_down = f"gpucourse --workspace '{paths.root}' destroy --all, then gpucourse leaks"
        raise SystemExit(f"an earlier live hour left {', '.join(stacks)}: {take_down}")
    learner_settings = settings.read_settings(root / "gpucourse.yaml")
    values = learner_settings.model_dump(mode="json", include=SETTINGS, exclude_unset=True) | {"budget_usd": float(max_usd)}
    paths.settings.write_text(json.dumps(values), encoding="utf-8")  # JSON is YAML
    environ = {**os.environ, "GPUCOURSE_WORKSPACE": str(paths.root)}
    return Hour(workspace=hour, environ=environ, region=learner_settings.region, max_usd=max_usd)


def read_price(hour: Hour) -> None:
    """Query the account for what is missing, and for the price. Exit if the amount is too small for two forgotten labs."""
    code, document = hour.type(DOCTOR, "no line says missing")
    if code != 0:
        raise SystemExit(f"the account is not ready, see {hour.file}: gpucourse doctor --target aws")
    hour.usd_per_hour = max(Decimal(str(price["usd_per_hour"])) for price in document["prices"])
    if (least := hour.usd_per_hour * LAB_H) > hour.max_usd:
        raise SystemExit(f"--max-usd {hour.max_usd}: two labs that nobody takes down cost ${least:.2f} until their deadlines")


def do_steps(hour: Hour) -> str:
    """Type the commands of all steps. Return `done`, `failed` or `out of money`."""
    for words, look in STEPS:
        if hour.remaining_s <= 0:
            return "out of money"
        if words[0] == "deploy" and hour.since is None:
            hour.since = time.monotonic()
        limit_s = min(STEP_S, hour.remaining_s)
        code, _document = hour.type(words, look, limit_s)
        if code != 0 and words[0] != "ssh":
            return "out of money" if hour.remaining_s <= 0 else "failed"
        if words[0] == "deploy":
            hour.facts[words[1]] = read_facts(Account(hour.region, hour.environ), hour.workspace.id)
    return "done"


def take_down(hour: Hour) -> None:
    """Remove everything that may exist, scan the whole account, and record what remains."""
    if hour.outcome != "done" or deployments.every(hour.workspace.paths):
        hour.type(("destroy", "--all", "--yes", "--discard", "--json"), "nothing is left")
    _code, document = hour.type(("leaks", "--json"), "nothing of the hour is left")
    hour.left = ["unknown: the search returned no answer"] if "things" not in document else []
    for thing in document.get("things", ()):
        if not thing["seen"] or thing["tags"].get("Course") == hour.workspace.id:
            hour.left.append(f"{thing['kind']} {thing['id']} in {thing['region']}: {thing['remove']}")
    hour.write()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--max-usd", type=Decimal, required=True, help="what it may cost at most")
    max_usd: Decimal = parser.parse_args().max_usd
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("this spends money, so a person has to agree at a terminal", file=sys.stderr)
        return 2
    hour = prepare(max_usd)
    read_price(hour)
    print(f"Two labs of one GPU instance in {hour.region}, one after the other, each taken down again.")
    print(f"At most ${hour.usd_per_hour:.2f} an hour; usually less than an hour in all.")
    if input(f"To spend at most that much, type {max_usd} USD: ").strip() != f"{max_usd} USD":
        print("nothing was created")
        return STOPPED
    handle_signals(signal.default_int_handler)
    try:
        hour.outcome = do_steps(hour)
    except KeyboardInterrupt:
        hour.outcome = "interrupted"
    finally:
        handle_signals(signal.SIG_IGN)
        take_down(hour)
    print(f"{hour.outcome}; at most ${hour.usd:.2f} of ${max_usd}; evidence: {hour.file}")
    if hour.left:
        print("\n".join(["something is left: gpucourse leaks --clean", *hour.left]), file=sys.stderr)
        return LEFT
    return {"done": 0, "interrupted": STOPPED}.get(hour.outcome, 1)


if __name__ == "__main__":
    raise SystemExit(main())
