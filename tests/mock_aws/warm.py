"""Modules and data that every account would load at its first calls. They are imported once, before the accounts are forked,
and contain no state.
"""

from __future__ import annotations

from importlib import import_module

from moto.core.utils import get_service_model

_SERVICES = {  # the names that moto uses, and those that botocore uses
    "ec2": "ec2",
    "efs": "efs",
    "iam": "iam",
    "resourcegroupstaggingapi": "resourcegroupstaggingapi",
    "scheduler": "scheduler",
    "ssm": "ssm",
    "sts": "sts",
}
for _package, _model in _SERVICES.items():
    import_module(f"moto.{_package}.models")
    import_module(f"moto.{_package}.urls")
    get_service_model(_model)
