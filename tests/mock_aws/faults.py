"""Failures on demand: which call fails or is held back, and when. Several threads may use this at the same time."""

from __future__ import annotations

import fnmatch
import threading
from dataclasses import dataclass
from typing import Literal

from tests.mock_aws import errors
from tests.mock_aws.call import Call, Refusal


@dataclass(kw_only=True)
class Rule:
    """One disturbance.

    `action`: `RunInstances`, `ec2:RunInstances` or a pattern (`ec2:*`).
    `zone`: the zone of the launch.
    `nth`: which of the matching calls is disturbed (the first is 1).
    `times`: how often that happens at most.
    `after`: the call takes effect first, and is then disturbed.
    """

    action: str
    effect: Literal["fail", "hold"] = "fail"
    code: str = ""
    zone: str = ""
    nth: int = 0
    times: int = 0
    after: bool = False
    matched: int = 0
    happened: int = 0

    def is_due(self, call: Call, zone: str) -> bool:
        """Return whether this call is disturbed. Matching calls are counted."""
        if not matches_call(self.action, call) or self.zone not in {"", zone}:
            return False
        self.matched += 1
        if (self.nth and self.matched != self.nth) or (self.times and self.happened >= self.times):
            return False
        self.happened += 1
        return True


class Faults:
    """The current rules, the denied permissions, and the expiry of the credentials."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = threading.Event()
        self._rules: list[Rule] = []
        self._denied: list[str] = []
        self._expired = False
        self._expires_after = ""
        self._held: list[str] = []

    def add(self, rule: Rule) -> None:
        """Add a rule. Raises KeyError for an unknown error."""
        if rule.effect == "fail":
            errors.KNOWN[rule.code]
        with self._lock:
            self._rules.append(rule)

    def deny(self, patterns: list[str]) -> None:
        """Deny these permissions, named as in a policy (`ec2:Describe*`)."""
        with self._lock:
            self._denied += patterns

    def expire(self, action: str) -> None:
        """Let the credentials expire: after the next call of `action`, or now if it is empty."""
        with self._lock:
            self._expired, self._expires_after = not action, action

    def renew(self) -> None:
        """Accept the credentials again."""
        with self._lock:
            self._expired, self._expires_after = False, ""

    def clear(self) -> None:
        """Remove all disturbances, and let all calls continue that are held back."""
        with self._lock:
            self._rules.clear()
            self._denied.clear()
        self.renew()
        self.release()

    def release(self) -> None:
        """Let all calls continue that are held back."""
        with self._lock:
            self._rules = [rule for rule in self._rules if rule.effect != "hold"]
            self._free.set()
            self._free = threading.Event()

    def list_held_calls(self) -> list[str]:
        """Return the calls that are held back at the moment."""
        with self._lock:
            return list(self._held)

    def before(self, call: Call, zone: str) -> Refusal | None:
        """Return what prevents a call, if anything does. A call that is held back waits here."""
        with self._lock:
            expired, is_denied = self._expired, any(matches_call(pattern, call) for pattern in self._denied)
        if expired:
            return errors.make_expiry(call)
        if is_denied:
            return errors.make_denial(call)
        return self._disturb(call, zone, is_done=False)

    def after(self, call: Call, zone: str) -> Refusal | None:
        """Return the error for a call that has taken effect, if there is one."""
        with self._lock:
            if self._expires_after and matches_call(self._expires_after, call):
                self._expired = True
        return self._disturb(call, zone, is_done=True)

    def _disturb(self, call: Call, zone: str, *, is_done: bool) -> Refusal | None:
        with self._lock:
            due = [rule for rule in self._rules if rule.after is is_done and rule.is_due(call, zone)]
            free = self._free
        for rule in due:
            if rule.effect == "hold":
                self._wait(call, free)
        code = next((rule.code for rule in due if rule.effect == "fail"), "")
        if not code:
            return None
        kind = {"instance_type": call.params["InstanceType"]} if "InstanceType" in call.params else {}
        return errors.refusal(call, code, **({"zone": zone} if zone else {}), **kind)

    def _wait(self, call: Call, free: threading.Event) -> None:
        with self._lock:
            self._held.append(call.name)
        free.wait()
        with self._lock:
            self._held.remove(call.name)


def matches_call(pattern: str, call: Call) -> bool:
    """Return whether a pattern, with or without the service, matches this call."""
    return fnmatch.fnmatchcase(call.name, pattern if ":" in pattern else f"*:{pattern}")
