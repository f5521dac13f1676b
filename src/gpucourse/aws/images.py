"""The machine images that a node can start from, best first, found by AWS's public parameters. Terraform uses the same list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpucourse.aws.session import Account
from gpucourse.errors import MissingError

ImageKind = Literal["pytorch", "ubuntu"]
_DEEP_LEARNING = "/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch"
_UBUNTU = "/aws/service/canonical/ubuntu/server"
CANDIDATES: dict[ImageKind, tuple[str, ...]] = {
    "pytorch": (
        f"{_DEEP_LEARNING}-2.12-ubuntu-24.04/latest/ami-id",
        f"{_DEEP_LEARNING}-2.11-ubuntu-24.04/latest/ami-id",
        f"{_DEEP_LEARNING}-2.10-ubuntu-24.04/latest/ami-id",
        f"{_DEEP_LEARNING}-2.13-ubuntu-26.04/latest/ami-id",
    ),
    "ubuntu": (
        f"{_UBUNTU}/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
        f"{_UBUNTU}/26.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Image:
    """A machine image in this region.

    `parameter`: the AWS parameter that contains its id.
    `root_gib`: the smallest root disk that it fits on, in GiB.
    """

    id: str
    parameter: str
    root_gib: int


def resolve(account: Account, kind: ImageKind) -> Image:
    """Return the best image of that kind that is available in this region today. Raises MissingError if there is none."""
    names = CANDIDATES[kind]
    answer = account.call("ssm", "get_parameters", Names=list(names))
    image_ids = {parameter["Name"]: parameter["Value"] for parameter in answer["Parameters"]}
    name = next((name for name in names if name in image_ids), None)
    if name is None:
        raise MissingError(
            f"{account.region} has none of the images that the course uses ({kind})",
            hint="choose another --region, or upgrade: pip install --upgrade gpucourse",
        )
    images = account.call("ec2", "describe_images", ImageIds=[image_ids[name]])["Images"]
    if not images:
        raise MissingError(f"{image_ids[name]} ({name}) does not exist in {account.region}", hint="choose another --region")
    root = images[0].get("RootDeviceName")
    sizes = [
        int(device["Ebs"]["VolumeSize"])
        for device in images[0].get("BlockDeviceMappings") or ()
        if device.get("DeviceName") == root and "VolumeSize" in device.get("Ebs", {})
    ]
    return Image(id=image_ids[name], parameter=name, root_gib=max(sizes, default=0))
