variable "lab" {
  description = "What is asked for: ../../modules/lab describes every field and refuses what cannot be."
  type = object({
    region          = optional(string, "us-east-2")
    zone            = string
    instance_type   = string
    gpus            = number # of each node; exercises/shared/gpus.json says how many a type has
    node_count      = optional(number, 3)
    spot            = optional(bool, false)
    placement_group = optional(bool, false)
    ssh_cidr        = string
    public_key      = string
    tags            = map(string)
    ttl_hours       = optional(number, 4)
  })
}

provider "aws" {
  region      = var.lab.region
  max_retries = 6 # the provider's own 25 would hide for half an hour that AWS has no room

  default_tags { tags = var.lab.tags }
}

module "scheduler" { source = "../../modules/slurm/boot" }

module "lab" {
  source = "../../modules/lab"

  lab            = var.lab
  max_nodes      = 8
  shared_storage = true
  head           = { instance_type = "t3.medium", root_gb = 30 }
  setup          = module.scheduler.setup
}

output "nodes" {
  description = "The nodes that stand, head first: the one shape that every target of the course hands over."
  value       = module.lab.nodes
}
