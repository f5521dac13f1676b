"""How the account says no, from anywhere in here."""

from __future__ import annotations

from tests.mock_aws.call import Refusal


class RefusalError(Exception):
    """What was asked is refused; `refusal` is what the caller hears."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.refusal = Refusal(code=code, message=message, status=status)
