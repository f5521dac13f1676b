from __future__ import annotations

import pytest

from gpucourse.errors import MissingError, UnknownName
from gpucourse.labs.ssh import connection
from tests.learning import Learning, deploy


def test_connection_of_a_node_is_the_configuration_and_the_node(learning: Learning) -> None:
    context, lab = learning.context, deploy(learning)
    with pytest.raises(MissingError, match="ssh_config is gone"):
        connection(context, "1", "0")
    config = context.paths.stack(lab.stack).ssh_config
    config.parent.mkdir(parents=True)
    config.touch()
    assert lab.inventory
    assert connection(context, "1", "0") == connection(context, "1", "node0") == (config, lab.inventory.head)
    for node_name in ("1", "node1", "²"):
        with pytest.raises(UnknownName, match="there is no node"):
            connection(context, "1", node_name)
