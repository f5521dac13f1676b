"""How long what was made or deleted takes to be known everywhere, by the account's own clock: it stands still until a test lets
time pass, so that nobody waits for it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Delays:
    """The delays of one account, in seconds; none unless a test says so.

    `role_s`: a role cannot be taken by a service yet. `listed_s`: a filter by tag does not list an instance yet. `known_s`: an
    instance is not known by its id yet. `console_s`: a console shows nothing yet; then its key is cut, then mixed with a line
    of the kernel, for 10 s each. `deleting_s`: a deleted schedule group still has its name.
    """

    now: float = 0.0
    role_s: float = 0.0
    listed_s: float = 0.0
    known_s: float = 0.0
    console_s: float = 0.0
    deleting_s: float = 0.0
    _since: dict[str, float] = field(default_factory=dict)

    def begin(self, name: str) -> None:
        """Something was made, or its end was asked for."""
        self._since[name] = self.now

    def age(self, name: str) -> float:
        """For how long it has been so; for ever where nobody began it."""
        return self.now - self._since[name] if name in self._since else float("inf")

    def is_young(self, name: str, seconds: float) -> bool:
        """Whether it has been so for less than that."""
        return self.age(name) < seconds

    def set(self, **seconds: float) -> None:
        """Change some of them. Raises AttributeError for a name that is none."""
        for name, value in seconds.items():
            getattr(self, name)
            setattr(self, name, value)
