"""The questions of an exercise, as a manifest has them."""

from __future__ import annotations

from gpucourse.model.fields import Slug, Text
from gpucourse.model.strict import Strict


class Question(Strict):
    """A question about what the learner just saw."""

    id: Slug
    text: Text
