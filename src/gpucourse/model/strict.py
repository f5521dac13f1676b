"""The ground of everything that a person writes in a manifest: strict, with no guessing."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, model_validator


class Strict(BaseModel):
    """No unknown key, and no guessing: a number in quotes is not a number. Lists become tuples."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _tuples(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
