"""The public images that the course starts from: in each region under ids of its own, each with a root disk of its own size."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from moto.ec2.models.amis import Ami, AmiBackend

from tests.mock_aws.state import State

_AMAZON, _CANONICAL = "898082745236", "099720109477"
_LEARNING = "/aws/service/deeplearning/ami/x86_64"
_UBUNTU = "/aws/service/canonical/ubuntu/server"


@dataclass(frozen=True, kw_only=True)
class PublicImage:
    """`parameter` is where Systems Manager tells its id; empty for an older build."""

    name: str
    owner: str
    alias: str
    root_gb: int
    parameter: str = ""

    def id_in(self, region: str) -> str:
        """An image has another id in each region."""
        return "ami-" + hashlib.sha256(f"{region} {self.name}".encode()).hexdigest()[:17]

    @property
    def build_date(self) -> datetime:
        """By the date that ends the name."""
        return datetime.strptime(self.name[-8:], "%Y%m%d").replace(tzinfo=UTC)


def _base(ubuntu: str, built: str, **more: str) -> PublicImage:
    name = f"Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu {ubuntu}) {built}"
    return PublicImage(name=name, owner=_AMAZON, alias="amazon", root_gb=75, **more)


def _single_cuda(ubuntu: str) -> PublicImage:
    return PublicImage(
        name=f"Deep Learning Base AMI with Single CUDA (Ubuntu {ubuntu}) 20261016",
        owner=_AMAZON,
        alias="amazon",
        root_gb=40,
        parameter=f"{_LEARNING}/base-with-single-cuda-ubuntu-{ubuntu}/latest/ami-id",
    )


def _pytorch(version: str, ubuntu: str) -> PublicImage:
    return PublicImage(
        name=f"Deep Learning OSS Nvidia Driver AMI GPU PyTorch {version} (Ubuntu {ubuntu}) 20261009",
        owner=_AMAZON,
        alias="amazon",
        root_gb=105,
        parameter=f"{_LEARNING}/oss-nvidia-driver-gpu-pytorch-{version}-ubuntu-{ubuntu}/latest/ami-id",
    )


def _plain(version: str, word: str, disk: str) -> PublicImage:
    return PublicImage(
        name=f"ubuntu/images/hvm-ssd-gp3/ubuntu-{word}-{version}-amd64-server-20261015",
        owner=_CANONICAL,
        alias="",
        root_gb=8,
        parameter=f"{_UBUNTU}/{version}/stable/current/amd64/hvm/{disk}/ami-id",
    )


IMAGES = (
    _base("22.04", "20260718"),
    _base("22.04", "20261016", parameter=f"{_LEARNING}/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"),
    _base("24.04", "20261016", parameter=f"{_LEARNING}/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"),
    _single_cuda("22.04"),
    _single_cuda("24.04"),
    _pytorch("2.10", "24.04"),
    _pytorch("2.11", "24.04"),
    _pytorch("2.12", "24.04"),
    _pytorch("2.13", "26.04"),
    _plain("22.04", "jammy", "ebs-gp2"),
    _plain("24.04", "noble", "ebs-gp3"),
)


def install(_state: State) -> None:
    """See each function."""
    have_the_images_of_the_course()
    tell_the_size_of_a_root_disk()


def have_the_images_of_the_course() -> None:
    """moto's own list knows none of them, and has the same ids in every region, so that a mix-up would go unseen."""

    def load(backend: Any) -> None:
        for image in IMAGES:
            ami = Ami(
                backend,
                image.id_in(backend.region_name),
                name=image.name,
                description=image.name,
                owner_id=image.owner,
                owner_alias=image.alias or None,
                public=True,
                virtualization_type="hvm",
                architecture="x86_64",
                creation_date=image.build_date,
                hypervisor="xen",
                root_device_type="ebs",
                root_device_name="/dev/sda1",
                image_location=f"{image.alias or image.owner}/{image.name}",
            )
            ami.ebs_snapshot.volume.size = image.root_gb
            backend.amis[ami.id] = ami

    AmiBackend._load_amis = load  # type: ignore[method-assign, assignment]


def tell_the_size_of_a_root_disk() -> None:
    """moto says 15 GB of every image; a stack reads it to make its own disk large enough."""

    def mappings(ami: Any) -> list[dict[str, Any]]:
        ebs = {
            "SnapshotId": ami.ebs_snapshot.id,
            "VolumeSize": root_gb(ami),
            "DeleteOnTermination": True,
            "VolumeType": "gp3",
            "Encrypted": False,
        }
        return [{"DeviceName": ami.root_device_name, "Ebs": ebs}]

    Ami.block_device_mappings = property(mappings)  # type: ignore[assignment, method-assign]


def root_gb(ami: Any) -> int:
    """How large the snapshot behind an image is, in GB."""
    return int(ami.ebs_snapshot.volume.size)
