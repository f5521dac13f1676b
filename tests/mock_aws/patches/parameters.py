"""Systems Manager's public parameters, which tell the newest build of an image."""

from __future__ import annotations

from typing import Any

from moto.core.utils import utcnow
from moto.ssm import models as ssm

from tests.mock_aws.patches.images import IMAGES
from tests.mock_aws.state import State

_PUBLIC = ("/aws/service/deeplearning", "/aws/service/canonical")


def install(_state: State) -> None:
    """See each function."""
    tell_the_newest_images()


def tell_the_newest_images() -> None:
    """moto has Amazon Linux's only. Its store is asked about a key or a path before either is looked up: that is the place."""
    store_class: Any = ssm.ParameterDict
    usual = store_class._check_loading_status

    def check(store: Any, key: str) -> None:
        usual(store, key)
        if str(key or "").startswith(_PUBLIC):
            for image in IMAGES:
                if image.parameter and not dict.__contains__(store, image.parameter):
                    told = _parameter(store, image.parameter, image.id_in(store.region_name))
                    dict.__setitem__(store, image.parameter, [told])

    store_class._check_loading_status = check


def _parameter(store: Any, name: str, value: str) -> Any:
    make: Any = ssm.Parameter  # its type says that it is abstract
    return make(
        account_id=store.account_id,
        name=name,
        value=value,
        parameter_type="String",
        description=None,
        allowed_pattern=None,
        keyid=None,
        last_modified_date=utcnow(),
        version=1,
        data_type="aws:ec2:image",
    )
