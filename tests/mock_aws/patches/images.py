"""The public images that the course uses. Each has a different id in each region, and a root disk of its own size."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, NamedTuple

from moto.core.utils import utcnow
from moto.ec2.models.amis import Ami, AmiBackend
from moto.ssm import models as ssm

from gpucourse.aws.preflight import CANDIDATES
from tests.mock_aws.state import State

_PUBLIC = ("/aws/service/deeplearning", "/aws/service/canonical")


class PublicImage(NamedTuple):
    """A public image. `parameter`: the name under which Systems Manager stores its id."""

    name: str
    owner: str
    root_gb: int
    parameter: str

    def id_in(self, region: str) -> str:
        """Return its id in a region. An image has a different id in each region."""
        return "ami-" + hashlib.sha256(f"{region} {self.name}".encode()).hexdigest()[:17]


IMAGES = (
    PublicImage(
        "Deep Learning OSS Nvidia Driver AMI GPU PyTorch 2.12 (Ubuntu 24.04)", "898082745236", 105, CANDIDATES["pytorch"][0]
    ),
    PublicImage("ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server", "099720109477", 8, CANDIDATES["ubuntu"][0]),
)


def install(_state: State) -> None:
    """Apply the patches of this file."""
    add_the_images_of_the_course()
    report_the_size_of_a_root_disk()
    publish_the_newest_images()


def add_the_images_of_the_course() -> None:
    """Replace moto's own list of images. It lacks these images, and has the same ids in every region, which would hide a
    mix-up.
    """

    def load(backend: Any) -> None:
        for image in IMAGES:
            ami = Ami(
                backend,
                image.id_in(backend.region_name),
                name=image.name,
                description=image.name,
                owner_id=image.owner,
                public=True,
                virtualization_type="hvm",
                architecture="x86_64",
                creation_date=datetime(2026, 10, 16, tzinfo=UTC),
                hypervisor="xen",
                root_device_type="ebs",
                root_device_name="/dev/sda1",
                image_location=f"{image.owner}/{image.name}",
            )
            ami.ebs_snapshot.volume.size = image.root_gb
            backend.amis[ami.id] = ami

    AmiBackend._load_amis = load  # type: ignore[method-assign, assignment]


def report_the_size_of_a_root_disk() -> None:
    """Report the image's own size. moto reports 15 GB for each image, but a stack reads the size to make its disk."""

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
    """Return the size of the snapshot behind an image, in GB."""
    return int(ami.ebs_snapshot.volume.size)


def publish_the_newest_images() -> None:
    """Add the public parameters with the ids of the images, just before moto looks up a key in its store."""
    store_class: Any = ssm.ParameterDict
    usual = store_class._check_loading_status

    def check(store: Any, key: str) -> None:
        usual(store, key)
        if str(key or "").startswith(_PUBLIC):
            for image in IMAGES:
                if not dict.__contains__(store, image.parameter):
                    parameter = _make_parameter(store, image.parameter, image.id_in(store.region_name))
                    dict.__setitem__(store, image.parameter, [parameter])

    store_class._check_loading_status = check


def _make_parameter(store: Any, name: str, value: str) -> Any:
    make: Any = ssm.Parameter  # its type annotation says that it is abstract
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
