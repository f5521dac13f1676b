"""Failures at will: which call fails or is held back, and when. Many threads ask at once."""

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

    `action` is `RunInstances`, `ec2:RunInstances` or a pattern (`ec2:*`). `zone` is that of the launch. Of the calls that
    match, `nth` picks one (the first is 1); `times` is how often it happens at most. `after`: the call is done first, then
    disturbed.
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
        """Return whether this call is disturbed. Counts those that match."""
        if not matches_call(self.action, call) or self.zone not in {"", zone}:
            return False
        self.matched += 1
        if (self.nth and self.matched != self.nth) or (self.times and self.happened >= self.times):
            return False
        self.happened += 1
        return True


class Faults:
    """The rules in force, the permissions taken away, and until when the credentials hold."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free = threading.Event()
        self._rules: list[Rule] = []
        self._denied: list[str] = []
        self._expired = False
        self._expires_after = ""
        self._held: list[str] = []

    def add(self, rule: Rule) -> None:
        """Put a rule in force. Raises KeyError if the error has no words."""
        if rule.effect == "fail":
            errors.KNOWN[rule.code]
        with self._lock:
            self._rules.append(rule)

    def deny(self, patterns: list[str]) -> None:
        """Take these permissions away, as a policy names them (`ec2:Describe*`)."""
        with self._lock:
            self._denied += patterns

    def expire(self, action: str) -> None:
        """Let the credentials run out: once `action` has been answered; now if it is empty."""
        with self._lock:
            self._expired, self._expires_after = not action, action

    def renew(self) -> None:
        """Have new credentials."""
        with self._lock:
            self._expired, self._expires_after = False, ""

    def clear(self) -> None:
        """Disturb nothing more; whoever was held goes on."""
        with self._lock:
            self._rules.clear()
            self._denied.clear()
        self.renew()
        self.release()

    def release(self) -> None:
        """Let every call go on that is held back."""
        with self._lock:
            self._rules = [rule for rule in self._rules if rule.effect != "hold"]
            self._free.set()
            self._free = threading.Event()

    def list_held_calls(self) -> list[str]:
        """List the calls that are held back right now."""
        with self._lock:
            return list(self._held)

    def before(self, call: Call, zone: str) -> Refusal | None:
        """Return what is in the way of a call; one that is held back waits in here."""
        with self._lock:
            expired, is_denied = self._expired, any(matches_call(pattern, call) for pattern in self._denied)
        if expired:
            return errors.make_expiry(call)
        if is_denied:
            return errors.make_denial(call)
        return self._disturb(call, zone, is_done=False)

    def after(self, call: Call, zone: str) -> Refusal | None:
        """Return what happens once the call has taken effect."""
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
    """Return whether a pattern, with the service or without, means this call."""
    return fnmatch.fnmatchcase(call.name, pattern if ":" in pattern else f"*:{pattern}")
