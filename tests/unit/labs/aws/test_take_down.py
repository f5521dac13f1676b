from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from gpucourse.context import Context
from gpucourse.labs.aws.take_down import find_unmanaged
from gpucourse.model.cloud import CloudResource


def test_find_unmanaged_lists_what_would_block_terraform(context: Context) -> None:
    kinds = {"i-1": "instance", "i-2": "instance", "vol-2": "volume"}
    resources = [CloudResource(kind=kind, id=item, region="us-east-2", remove="aws") for item, kind in kinds.items()]
    paths = context.paths.stack("03-aws-t4")
    lab: Any = SimpleNamespace(paths=paths, find_resources=lambda: resources)
    assert find_unmanaged(lab) == resources, "without a state Terraform knows nothing"
    paths.terraform.mkdir(parents=True)
    instances = [{"attributes": {"id": "i-1"}}]
    state = {"resources": [{"mode": "managed", "type": "aws_instance", "name": "node", "instances": instances}]}
    paths.state.write_text(json.dumps(state))
    assert [resource.id for resource in find_unmanaged(lab)] == ["i-2"], "a volume goes with its instance"
