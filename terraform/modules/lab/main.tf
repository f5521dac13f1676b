locals {
  stack          = var.lab.tags["Stack"]
  shared_address = var.shared_storage ? module.storage[0].address : ""
}

module "network" {
  source = "../network"

  stack      = local.stack
  region     = var.lab.region
  zone       = var.lab.zone
  ssh_cidr   = var.lab.ssh_cidr
  public_key = var.lab.public_key
}

module "storage" {
  source = "../storage"
  count  = var.shared_storage ? 1 : 0

  stack             = local.stack
  subnet_id         = module.network.subnet_id
  security_group_id = module.network.security_group_id
}

resource "aws_placement_group" "close" {
  count = var.lab.placement_group ? 1 : 0

  name     = "gpucourse-${local.stack}"
  strategy = "cluster"
}

# On demand, even if the GPU nodes are spot instances: losing the head loses the cluster, and it costs a few cents per hour.
module "head" {
  source = "../node"
  count  = var.head == null ? 0 : 1

  tags              = var.lab.tags
  node_count        = 1
  instance_type     = var.head.instance_type
  gpus              = 0
  image             = "ubuntu"
  release           = module.nodes.release
  root_gb           = var.head.root_gb
  free_gb           = 10
  subnet_id         = module.network.subnet_id
  security_group_id = module.network.security_group_id
  key_name          = module.network.key_name
  shared_address    = local.shared_address
  ttl_hours         = var.lab.ttl_hours
  setup             = var.setup
}

module "nodes" {
  source = "../node"

  tags              = var.lab.tags
  first             = var.head == null ? 0 : 1
  node_count        = var.lab.node_count
  instance_type     = var.lab.instance_type
  gpus              = var.lab.gpus
  spot              = var.lab.spot
  placement_group   = one(aws_placement_group.close[*].name)
  subnet_id         = module.network.subnet_id
  security_group_id = module.network.security_group_id
  key_name          = module.network.key_name
  shared_address    = local.shared_address
  ttl_hours         = var.lab.ttl_hours
  inference         = var.inference
  setup             = var.setup
}
