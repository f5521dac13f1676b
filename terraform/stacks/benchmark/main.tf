variable "lab" {
  description = "What is asked for: ../../modules/lab describes every field and refuses what cannot be."
  type = object({
    region          = optional(string, "us-east-2")
    zone            = string
    instance_type   = string
    gpus            = number # of each node; exercises/shared/gpus.json says how many a type has
    node_count      = optional(number, 1)
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

module "lab" {
  source = "../../modules/lab"

  lab       = var.lab
  max_nodes = 4
  inference = true
}

output "nodes" {
  description = "The nodes that stand, head first: the one shape that every target of the course hands over."
  value       = module.lab.nodes
}
