"""Patches for what moto lacks or does wrong, one function each, with the reason."""

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
    """Patch moto in this process. Later patches wrap earlier ones."""
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
