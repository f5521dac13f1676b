from __future__ import annotations

import pytest

from gpucourse.model.event import Event, NodeEvent, Note, ResourceEvent, Stage, label_events


@pytest.mark.parametrize(
    ("stages", "stage"),
    [
        (True, Stage(name="04-aws-l4 look", text="04-aws-l4: looking")),
        (False, Stage(name="look", text="looking")),  # a stage that names the stack itself
    ],
)
def test_label_events_tells_apart_what_goes_on_side_by_side(stages: bool, stage: Stage) -> None:
    events: list[Event] = []
    watch = label_events(events.append, "04-aws-l4", stages=stages)
    watch(ResourceEvent(address="aws_instance.node", action="create", state="done"))
    watch(NodeEvent(node="node0", step="ssh", ok=True, seconds=1.0))
    watch(Stage(name="look", text="looking"))
    watch(Note(text="so it is"))
    assert events == [
        ResourceEvent(address="04-aws-l4 aws_instance.node", action="create", state="done"),
        NodeEvent(node="04-aws-l4 node0", step="ssh", ok=True, seconds=1.0),
        stage,
        Note(text="so it is"),
    ]
