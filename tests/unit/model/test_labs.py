from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gpucourse.model.labs import AwsLab, Lab


@pytest.mark.parametrize(
    ("kind", "values", "complaint"),
    [
        (Lab, {"nodes": 3, "max_nodes": 2}, r"nodes \(3\) is above max_nodes \(2\)"),
        (Lab, {"nodes": 65}, "64"),
        (AwsLab, {"nodes": 3, "max_nodes": 2}, r"nodes \(3\) is above max_nodes \(2\)"),
        (AwsLab, {"nodes": 2, "min_nodes": 3}, r"min_nodes \(3\) is above nodes \(2\)"),
        (AwsLab, {"gpu": "v100"}, "'t4'.* or '"),
        (AwsLab, {"size": "tiny"}, "size"),
    ],
)
def test_lab_with_wrong_values_is_refused(kind: Any, values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        kind.model_validate({"template": "lab", **values})
