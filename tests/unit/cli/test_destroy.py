"""`destroy` of a lab that is not there."""

from __future__ import annotations

import pytest

from gpucourse.workspace import deployments
from tests.learning import Learning
from tests.unit.ui.examples import deployment


def test_destroy_of_a_lab_that_is_not_there_names_those_that_are(learning: Learning) -> None:
    assert "Nothing is deployed from this workspace" in learning.types("destroy", "1").out
    deployments.save(learning.open_context().paths, deployment())
    assert "Module 1 is not deployed; deployed: 3 (local)." in learning.types("destroy", "1").out
    assert "Module 1 is not deployed on hosts; deployed: 3 (local)." in learning.types("destroy", "1", "--target", "hosts").out
    assert "No such lab is deployed with l4; deployed: 3 (local)." in learning.types("destroy", "--all", "--gpu", "l4").out
    assert [lab.stack for lab in deployments.every(learning.open_context().paths)] == ["m3-local"]


def test_destroy_that_is_interrupted_says_what_to_type(learning: Learning, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    deployments.save(learning.open_context().paths, deployment())
    monkeypatch.setattr("gpucourse.labs.destroy.destroy", interrupt)
    said = learning.types("destroy", "--all", code=130).err
    assert "interrupted while labs were taken down; some may still be there" in said
    assert "gpucourse destroy --all" in said
