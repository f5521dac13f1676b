from __future__ import annotations

import pytest

from gpucourse.errors import Interrupted
from gpucourse.model.event import Event, NodeEvent, Note, ResourceEvent, Stage, label_events, stage


@pytest.mark.parametrize(
    ("stages", "labelled_stage"),
    [
        (True, Stage(name="04-aws-l4 look", text="04-aws-l4: looking")),
        (False, Stage(name="look", text="looking")),  # a stage that names the stack itself
    ],
)
def test_label_events_tells_apart_what_goes_on_side_by_side(stages: bool, labelled_stage: Stage) -> None:
    events: list[Event] = []
    watch = label_events(events.append, "04-aws-l4", stages=stages)
    watch(ResourceEvent(address="aws_instance.node", action="create", state="done"))
    watch(NodeEvent(node="node0", step="ssh", ok=True, seconds=1.0))
    watch(Stage(name="look", text="looking"))
    watch(Note(text="so it is"))
    assert events == [
        ResourceEvent(address="04-aws-l4 aws_instance.node", action="create", state="done"),
        NodeEvent(node="04-aws-l4 node0", step="ssh", ok=True, seconds=1.0),
        labelled_stage,
        Note(text="so it is"),
    ]


def test_stage_reports_its_end_unless_the_person_interrupts_it() -> None:
    events: list[Event] = []
    phases: dict[str, float] = {}
    with stage(events.append, "run", "running", phases, silence="importing torch"):
        assert events == [Stage(name="run", text="running", silence="importing torch")]
    with pytest.raises(ValueError, match="wrong"), stage(events.append, "judge", "judging", phases):
        raise ValueError("wrong")
    with pytest.raises(Interrupted), stage(events.append, "collect", "collecting", phases):
        raise Interrupted("let go")
    stages = [event for event in events if isinstance(event, Stage)]
    ends = [("run", True), ("judge", False)]
    assert [(event.name, event.ok) for event in stages if event.seconds is not None] == ends
    assert list(phases) == ["run", "judge", "collect"]
