"""One account for all tests of a file. Each test finds it in the state of a new account."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mock_aws.account import Account, mock_account

GRAPHICS = "L-DB2E81BA"


@pytest.fixture(scope="module")
def shared_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """Yield an account that outlives a test."""
    with mock_account(tmp_path_factory.mktemp("account")) as account:
        yield account


@pytest.fixture
def account(shared_account: Account) -> Iterator[Account]:
    """Yield the shared account in the state of a new one: undisturbed, on the paid plan, empty. Fails if a test leaves anything
    in it.
    """
    yield shared_account
    shared_account.calm()
    shared_account.renew_credentials()
    shared_account.plan("PAID")
    shared_account.quota(GRAPHICS, 64)
    assert shared_account.resources() == []
