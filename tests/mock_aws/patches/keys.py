"""Key pairs."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.key_pairs import KeyPairs

from tests.mock_aws.refusal_error import RefusalError
from tests.mock_aws.state import State


def install(_state: State) -> None:
    """See each function."""
    find_key_pairs_by_id()


def find_key_pairs_by_id() -> None:
    """moto deletes and describes them by name only, and quietly deletes nothing when it is given an id."""
    delete, describe = KeyPairs.delete_key_pair, KeyPairs.describe_key_pairs

    def delete_key_pair(self: Any) -> ActionResult:
        if key_id := self._get_param("KeyPairId"):
            named = [pair.key_name for pair in self.ec2_backend.key_pairs.values() if pair.id == key_id]
            if not named:
                raise RefusalError("InvalidKeyPair.NotFound", f"The key pair '{key_id}' does not exist")
            self.params["KeyName"] = named[0]
        return delete(self)

    def describe_key_pairs(self: Any) -> ActionResult:
        for key_id in self._get_param("KeyPairIds", []):
            named = [pair.key_name for pair in self.ec2_backend.key_pairs.values() if pair.id == key_id]
            if not named:
                raise RefusalError("InvalidKeyPair.NotFound", f"The key pair '{key_id}' does not exist")
            self.params["KeyNames"] = [*self._get_param("KeyNames", []), *named]
        return describe(self)

    KeyPairs.delete_key_pair = delete_key_pair  # type: ignore[method-assign]
    KeyPairs.describe_key_pairs = describe_key_pairs  # type: ignore[method-assign]
