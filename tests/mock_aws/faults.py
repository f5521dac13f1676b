"""Failures at will: which call fails or is held back, and when. Many threads ask at once."""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tests.mock_aws import errors
from tests.mock_aws.call import Call, Refusal

Effect = Literal["fail", "hold"]


@dataclass(kw_only=True)
class Rule:
    """One disturbance.

    `action` is `RunInstances`, `ec2:RunInstances` or a pattern (`ec2:*`). `zone` is that of the launch. Of the calls that
    match, `nth` picks one (the first is 1); `times` is how often it happens at most. `after`: the call is done first, then
    disturbed.
    """

    action: str
    effect: Effect = "fail"
    code: str = ""
    message: str = ""
    status: int = 0
    zone: str = ""
    nth: int = 0
    times: int = 0
    after: bool = False
    matched: int = 0
    happened: int = 0

    def concerns(self, call: Call, facts: Mapping[str, str]) -> bool:
        """Whether the rule is about such a call at all."""
        return matches_call(self.action, call) and self.zone in {"", facts.get("zone", "")}

    def due(self) -> bool:
        """Whether this one, of the calls that match, is disturbed. Counts."""
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
        """A rule from now on. Raises ValueError where the error has no words."""
        if rule.effect == "fail":
            probe = Call(service="ec2", action=rule.action, region="", key="", protocol="ec2", content_type="")
            errors.refusal(probe, rule.code, message=rule.message)
        with self._lock:
            self._rules.append(rule)

    def deny(self, patterns: list[str]) -> None:
        """Take these permissions away, as a policy names them (`ec2:Describe*`)."""
        with self._lock:
            self._denied += patterns

    def expire(self, after: str) -> None:
        """Let the credentials run out: once `after` has been answered; now if it is empty."""
        with self._lock:
            self._expired, self._expires_after = not after, after

    def renew(self) -> None:
        """New credentials."""
        with self._lock:
            self._expired, self._expires_after = False, ""

    def clear(self) -> None:
        """No more disturbances; whoever was held goes on."""
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
        """The calls that are held back right now."""
        with self._lock:
            return list(self._held)

    def is_denied(self, call: Call) -> bool:
        """Whether the caller lacks the permission."""
        with self._lock:
            return any(matches_call(pattern, call) for pattern in self._denied)

    def before(self, call: Call, facts: Mapping[str, str]) -> Refusal | None:
        """What is in the way of a call; one that is held back waits in here."""
        with self._lock:
            if self._expired:
                return errors.make_expiry(call)
        if self.is_denied(call):
            return errors.make_denial(call)
        return self._disturb(call, facts, after=False)

    def after(self, call: Call, facts: Mapping[str, str]) -> Refusal | None:
        """What happens once the call has taken effect."""
        with self._lock:
            if self._expires_after and matches_call(self._expires_after, call):
                self._expired = True
        return self._disturb(call, facts, after=True)

    def _disturb(self, call: Call, facts: Mapping[str, str], *, after: bool) -> Refusal | None:
        with self._lock:
            due = [rule for rule in self._rules if rule.after is after and rule.concerns(call, facts) and rule.due()]
            free = self._free
        for rule in due:
            if rule.effect == "hold":
                self._wait(call, free)
        failing = next((rule for rule in due if rule.effect == "fail"), None)
        if failing is None:
            return None
        return errors.refusal(call, failing.code, message=failing.message, status=failing.status, **facts)

    def _wait(self, call: Call, free: threading.Event) -> None:
        with self._lock:
            self._held.append(call.name)
        free.wait()
        with self._lock:
            self._held.remove(call.name)


def matches_call(pattern: str, call: Call) -> bool:
    """Whether a pattern, with the service or without, means this call."""
    return fnmatch.fnmatchcase(call.name, pattern if ":" in pattern else f"*:{pattern}")
