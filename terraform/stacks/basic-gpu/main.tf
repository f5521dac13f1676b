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

module "nodes" {
  source = "../../modules/node"

  tags              = var.tags
  node_count        = var.node_count
  instance_type     = var.instance_type
  spot              = var.spot
  subnet_id         = module.network.subnet_id
  security_group_id = module.network.security_group_id
  key_name          = module.network.key_name
  ttl_hours         = var.ttl_hours
  inference         = true
}
