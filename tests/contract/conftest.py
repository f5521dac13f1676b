"""An account that the tests of a file share."""

from tests.mock_aws.shared import account, shared_account

__all__ = ["account", "shared_account"]
