"""What every account would load anew at its first calls, imported once, before the accounts are forked. None of it is state."""

from __future__ import annotations

from importlib import import_module

from moto.core.utils import get_service_model

_SERVICES = {  # as moto calls them, and as botocore does
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
