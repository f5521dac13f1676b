"""What moto lacks or gets wrong, mended one function at a time; each says why."""

from __future__ import annotations

from tests.mock_aws.patches import (
    addresses,
    console,
    dependencies,
    drift,
    images,
    launch,
    placement,
    regions,
    roles,
    spot,
    termination,
    threads,
)
from tests.mock_aws.state import State


def install(state: State) -> None:
    """Mend moto in this process. Later ones wrap what earlier ones put there."""
    for module in (
        threads,
        images,
        placement,
        regions,
        drift,
        roles,
        spot,
        dependencies,
        termination,
        addresses,
        console,
        launch,
    ):
        module.install(state)
