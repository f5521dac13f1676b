locals {
  # Public SSM parameters, best first. AWS stops building a series of images some months after it began, and adds new ones, so any
  # of these may be absent one day; the first one that exists is used.
  image_parameters = {
    pytorch = [
      "/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.12-ubuntu-24.04/latest/ami-id",
      "/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.11-ubuntu-24.04/latest/ami-id",
      "/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.10-ubuntu-24.04/latest/ami-id",
      "/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.13-ubuntu-26.04/latest/ami-id",
    ]
    ubuntu = [
      "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
      "/aws/service/canonical/ubuntu/server/26.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
    ]
  }

  # Slurm of one release cannot talk to Slurm of another, so the head boots the same release as the nodes.
  releases   = { for name in local.image_parameters[var.image] : name => tonumber(regex("ubuntu(?:-|/server/)([0-9]+[.][0-9]+)/", name)[0]) }
  candidates = [for name in local.image_parameters[var.image] : name if var.release == 0 || local.releases[name] == var.release]
  python     = { pytorch = "/opt/pytorch/bin/python", ubuntu = "/usr/bin/python3" }[var.image]

  # The provider treats every parameter as a secret; an image id is not one.
  images_by_name = merge([for folder in data.aws_ssm_parameters_by_path.images : zipmap(folder.names, nonsensitive(sensitive(folder.values)))]...)
  image          = try([for name in local.candidates : name if contains(keys(local.images_by_name), name)][0], null)
  ami            = local.image == null ? null : local.images_by_name[local.image]

  snapshot_gb = max(0, [
    for device in data.aws_ami.image.block_device_mappings : tonumber(device.ebs.volume_size) if device.device_name == data.aws_ami.image.root_device_name
  ]...)
}

# Read by path: an absent parameter is then only missing from the answer, while reading it by name is an error.
data "aws_ssm_parameters_by_path" "images" {
  for_each = toset([for name in local.candidates : dirname(name)])

  path            = each.value
  with_decryption = false
}

data "aws_ami" "image" {
  filter {
    name   = "image-id"
    values = [coalesce(local.ami, "none")]
  }

  lifecycle {
    precondition {
      condition     = local.ami != null
      error_message = "This region offers none of the images that the course knows: ${join(", ", local.candidates)}."
    }
  }
}
