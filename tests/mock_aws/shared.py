"""One account for the tests of a file, each of which finds it as a new one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mock_aws.account import Account, mock_account

GRAPHICS, GRAPHICS_SPOT = "L-DB2E81BA", "L-3819A6DF"


@pytest.fixture(scope="module")
def shared_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """An account whose state outlives a test."""
    with mock_account(tmp_path_factory.mktemp("account")) as account:
        yield account


@pytest.fixture
def account(shared_account: Account) -> Iterator[Account]:
    """The shared account, as new: quiet, paid and empty. Fails where a test leaves more than instances."""
    yield shared_account
    shared_account.calm()
    shared_account.renew_credentials()
    shared_account.plan("PAID")
    for code in (GRAPHICS, GRAPHICS_SPOT):
        shared_account.close_requests(code)
        shared_account.quota(code, 64)
    left = [instance.id for instance in shared_account.resources("instance")]
    if left:
        shared_account.client("ec2").terminate_instances(InstanceIds=left)
    assert shared_account.resources() == []
