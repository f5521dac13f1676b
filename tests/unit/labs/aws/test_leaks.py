from __future__ import annotations

from dataclasses import replace

from gpucourse.context import Context
from gpucourse.labs.aws.leaks import _classify
from gpucourse.model.cloud import CloudResource
from gpucourse.units import later, now_utc
from gpucourse.workspace import deployments
from tests.unit.labs.aws.fakes import deployment_of

PAST, FUTURE = later(now_utc(), -60), later(now_utc(), 3600)


def resource(stack: str, **tags: str) -> CloudResource:
    return CloudResource(kind="instance", id="i-1", region="us-east-2", remove="aws", tags={"Stack": stack, **tags})


def test_classify_calls_a_leak_what_no_lab_and_no_other_person_explains(context: Context) -> None:
    lab = deployment_of()
    deployments.save(context.paths, lab)
    foreign_tags = {"Course": "theirs", "Owner": "grace"}
    resources = [
        resource(lab.uid, Expires=PAST),
        resource("lost", Course=context.workspace.id, Owner="grace", Expires=FUTURE),
        resource("theirs", **foreign_tags, Expires=FUTURE),
        resource("theirs", **foreign_tags, Expires=PAST),  # `extend` could not change this tag
        resource("over", **foreign_tags, Expires=PAST),
        resource("odd", **foreign_tags, Expires="soon"),
        replace(resource(""), seen=False),
    ]
    states = [thing.state for thing in _classify(context, resources, everyone=False)]
    assert states == ["standing", "leak", "another's", "another's", "leak", "leak", "unknown"]
    assert [thing.state for thing in _classify(context, resources, everyone=True)][2:4] == ["leak", "leak"]
