provider "aws" {
  region      = var.region
  max_retries = 6 # the provider's own 25 would hide for half an hour that AWS has no room

  default_tags {
    tags = var.tags
  }
}

module "network" {
  source = "../../modules/network"

  stack      = var.tags["Stack"]
  region     = var.region
  zone       = var.zone
  ssh_cidr   = var.ssh_cidr
  public_key = var.public_key
}

module "storage" {
  source = "../../modules/storage"

  stack             = var.tags["Stack"]
  subnet_id         = module.network.subnet_id
  security_group_id = module.network.security_group_id
}

module "scheduler" {
  source = "../../modules/slurm/boot"
}

# On demand, also where the GPU nodes are spot: losing the head loses the cluster, and it costs a few cents an hour.
module "head" {
  source = "../../modules/node"

  tags              = var.tags
  node_count        = 1
  instance_type     = "t3.medium"
  image             = "ubuntu"
  root_gb           = 30
  subnet_id         = module.network.subnet_id
  security_group_id = module.network.security_group_id
  key_name          = module.network.key_name
  ttl_hours         = var.ttl_hours
  shared_address    = module.storage.address
  setup             = module.scheduler.setup
}

module "workers" {
  source = "../../modules/node"

  tags              = var.tags
  first             = 1
  node_count        = var.node_count
  instance_type     = var.instance_type
  spot              = var.spot
  subnet_id         = module.network.subnet_id
  security_group_id = module.network.security_group_id
  key_name          = module.network.key_name
  ttl_hours         = var.ttl_hours
  shared_address    = module.storage.address
  setup             = module.scheduler.setup
}
