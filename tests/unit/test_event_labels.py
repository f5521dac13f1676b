"""What goes on side by side is told apart by its label."""

from __future__ import annotations

from gpucourse.model.event import Event, NodeEvent, Note, ResourceEvent, Stage, label_events

EVENTS: list[Event] = [
    ResourceEvent(address="aws_instance.node", action="create", state="done"),
    NodeEvent(node="node0", step="ssh", ok=True, seconds=1.0),
    Stage(name="look", text="looking"),
    Note(text="so it is"),
]


def list_labels(*, stages: bool) -> list[str]:
    events: list[Event] = []
    watch = label_events(events.append, "04-aws-l4", stages=stages)
    for event in EVENTS:
        watch(event)
    resource, node, stage, note = events
    assert isinstance(resource, ResourceEvent)
    assert isinstance(node, NodeEvent)
    assert isinstance(stage, Stage)
    assert isinstance(note, Note)
    return [resource.address, node.node, stage.name, stage.text, note.text]


def test_resources_nodes_and_stages_get_the_label() -> None:
    told = ["04-aws-l4 aws_instance.node", "04-aws-l4 node0", "04-aws-l4 look", "04-aws-l4: looking", "so it is"]
    assert list_labels(stages=True) == told


def test_stages_that_name_the_stack_themselves_stay_as_they_are() -> None:
    assert list_labels(stages=False)[2:4] == ["look", "looking"]
