variable "lab" {
  description = "The requested lab: ../../modules/lab describes every field and refuses invalid values."
  type = object({
    region          = optional(string, "us-east-2")
    zone            = string
    instance_type   = string
    gpus            = number # per node; exercises/shared/gpus.json lists how many each type has
    node_count      = optional(number, 2)
    spot            = optional(bool, false)
    placement_group = optional(bool, true)
    ssh_cidr        = string
    public_key      = string
    tags            = map(string)
    ttl_hours       = number
    min_ttl_hours   = number
    max_ttl_hours   = number
  })
}

provider "aws" {
  region      = var.lab.region
  max_retries = 6 # the provider's default of 25 would hide for half an hour that AWS has no capacity

  default_tags { tags = var.lab.tags }
}

module "lab" {
  source = "../../modules/lab"

  lab            = var.lab
  max_nodes      = 8
  shared_storage = true
}

output "nodes" {
  description = "The deployed nodes, head first, in the form that every target of the course outputs."
  value       = module.lab.nodes
}
