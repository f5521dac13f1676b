"""What AWS may refuse while a lab is built or taken down, a row a fault: the exit code, the words, and what is left of it.

One row for each way on from a refusal; the words for every code of AWS are in tests/unit/aws/test_failures.py, what a full
zone and a quota lead to in test_failover.py.
One learner for all rows: each ends with an account where nothing is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.mock_aws.account import Account
from tests.system.aws import hand_made
from tests.system.aws.courses import write_course
from tests.system.aws.learner import CloudLearner, cloud_learner

pytestmark = [pytest.mark.system, pytest.mark.slow]

DEPLOY = ("deploy", "1", "--target", "aws", "--yes")
NETWORK = {"vpc", "subnet", "internet gateway", "route table", "security group", "key pair"}
NODE = {"instance", "volume", "network interface"}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One row: what AWS does, the exit code of `deploy`, its words, and the kinds of things that exist afterwards."""

    name: str
    disturb: Callable[[Account], None]
    code: int
    words: tuple[str, ...]
    left: frozenset[str] = frozenset()


def refuse(action: str, code: str, **when: object) -> Callable[[Account], None]:
    """A call that fails with an error of AWS."""
    return lambda account: account.fail(action, code, **when)


def deny(action: str) -> Callable[[Account], None]:
    """A permission that the identity lacks."""
    return lambda account: account.deny(action)


def fail_and_deny(account: Account) -> None:
    """Two faults that a lab survives: a call that fails, and one that the identity may not make."""
    account.fail("ec2:GetConsoleOutput", "InternalError", times=5)
    account.deny("scheduler:*")


FAULTS = [
    Fault(
        name="a permission is missing",
        disturb=deny("ec2:RunInstances"),
        code=3,
        words=("refused: ec2:RunInstances", "doctor --policy"),
    ),
    Fault(
        name="the console may not be read",
        disturb=deny("ec2:GetConsoleOutput"),
        code=3,
        words=("ec2:GetConsoleOutput", "1 of them instance", "gpucourse destroy 1"),
        left=frozenset(NETWORK | NODE | {"schedule", "schedule group"}),
    ),
    Fault(
        name="a code that no row has",
        disturb=refuse("ec2:CreateSubnet", "BrandNewFailure", message="Nobody has seen this before.", status=400),
        code=6,
        words=(
            "AWS refused [BrandNewFailure: Nobody has seen this before.]",
            "read its own words above",
            "gpucourse destroy 1",
        ),
        left=frozenset(NETWORK - {"subnet"}),
    ),
    Fault(
        name="AWS fails once after the tries of its own library, and no schedule may be made",
        disturb=fail_and_deny,
        code=0,
        words=("backstop outside the nodes: not in place", "scheduler:CreateScheduleGroup"),
        left=frozenset(NETWORK | NODE),
    ),
]


@pytest.fixture(scope="module")
def shared_learner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudLearner]:
    """A learner whose module 1 is one node."""
    folder = tmp_path_factory.mktemp("faults")
    with cloud_learner(folder) as learner:
        learner.environ["GPUCOURSE_COURSE"] = str(write_course(folder / "course"))
        yield learner


@pytest.fixture
def learner(shared_learner: CloudLearner) -> Iterator[CloudLearner]:
    """The same, in an account that is quiet again afterwards, and empty after a `destroy`."""
    yield shared_learner
    shared_learner.account.calm()
    shared_learner.types("destroy", "--all", "--yes", timeout=300)
    assert shared_learner.list_resources() == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_while_it_is_built(learner: CloudLearner, fault: Fault) -> None:
    fault.disturb(learner.account)
    typed = learner.types(*DEPLOY, code=fault.code, timeout=300)
    for words in fault.words:
        assert words in typed.err + typed.out
    assert {resource.kind for resource in learner.list_resources()} == fault.left


def test_a_schedule_that_may_not_be_removed_fails_no_destroy(learner: CloudLearner) -> None:
    """It ends nothing any more, and costs nothing."""
    hand_made.lab(learner, module="1")
    learner.account.deny("scheduler:DeleteScheduleGroup")
    learner.types("destroy", "1", "--yes", timeout=300)
