from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from gpucourse.cli.output import UNSET, JsonDocument, UnsetType


@dataclass
class Spring:
    name: str = "upper"
    litres: float = 1.5
    secret: str = "never shown"


@dataclass
class River:
    springs: list[Spring] = field(default_factory=lambda: [Spring()])
    length: int = 3


class SpringDocument(JsonDocument):
    name: str
    litres: float


class RiverDocument(JsonDocument):
    length: int
    springs: list[SpringDocument]
    mouth: str | UnsetType = UNSET


def test_document_of_a_model_has_its_fields_alone_in_their_order() -> None:
    assert msgspec.json.encode(RiverDocument.of(River())) == b'{"length":3,"springs":[{"name":"upper","litres":1.5}]}'
    named = msgspec.json.encode(RiverDocument.of(River(), length=4, mouth="the sea"))
    assert named == b'{"length":4,"springs":[{"name":"upper","litres":1.5}],"mouth":"the sea"}'
