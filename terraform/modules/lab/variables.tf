variable "lab" {
  description = "The requested lab. Every stack of the course takes this object, with its own defaults."
  type = object({
    region          = string      # such as us-east-2
    zone            = string      # the availability zone of everything in the lab
    instance_type   = string      # the type of the GPU nodes
    gpus            = number      # GPUs per node: AWS cannot be asked before the instance exists
    node_count      = number      # how many GPU nodes
    spot            = bool        # one-time spot instances: cheaper, but AWS may take them back with two minutes' notice
    placement_group = bool        # nodes close together: a faster network, but AWS has capacity for them less often
    ssh_cidr        = string      # the one address that may log in, as <IPv4>/32
    public_key      = string      # the public SSH key for logging in to the nodes, as one line
    tags            = map(string) # the tags of every resource: Project, Course, Module, Owner, Stack (the deployment), Expires (its end, UTC)
    ttl_hours       = number      # a node ends itself at Expires; one created after that lives this long
    min_ttl_hours   = number      # the smallest and the largest value that the course allows
    max_ttl_hours   = number
  })

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]+$", var.lab.region))
    error_message = "region: a region is written like us-east-2."
  }

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]+[a-z]$", var.lab.zone))
    error_message = "zone: a zone is written like us-east-2a."
  }

  validation {
    condition     = can(regex("^[a-z0-9-]+[.][a-z0-9-]+$", var.lab.instance_type))
    error_message = "instance_type: a type of EC2 is written as family.size, such as t3.medium."
  }

  validation {
    condition     = var.lab.gpus >= 1 && floor(var.lab.gpus) == var.lab.gpus
    error_message = "gpus: a node of a lab has 1 GPU or more; exercises/shared/gpus.json lists how many each type has."
  }

  validation {
    condition     = var.lab.node_count >= 1 && floor(var.lab.node_count) == var.lab.node_count
    error_message = "node_count: a lab has 1 node or more."
  }

  validation {
    condition     = can(regex("^[0-9.]+/32$", var.lab.ssh_cidr)) && can(cidrhost(var.lab.ssh_cidr, 0)) && !startswith(var.lab.ssh_cidr, "0.")
    error_message = "ssh_cidr: SSH is open to one IPv4 address only, written as 203.0.113.7/32; 0.0.0.0/0 is refused."
  }

  validation {
    condition     = can(regex("^(ssh-ed25519|ssh-rsa) [A-Za-z0-9+/]+={0,3}( [^\n]*)?\n?$", var.lab.public_key))
    error_message = "public_key: the public key is one line such as ssh-ed25519 AAAA...; EC2 accepts ed25519 and RSA keys."
  }

  validation {
    condition     = lookup(var.lab.tags, "Project", "") == "gpucourse" && length(setsubtract(["Course", "Module", "Owner", "Stack", "Expires"], keys(var.lab.tags))) == 0
    error_message = "tags: without Project = gpucourse, Course, Module, Owner, Stack and Expires resources could not be found and removed later."
  }

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{3,63}$", lookup(var.lab.tags, "Stack", "none")))
    error_message = "tags: Stack must have 4 to 64 letters, digits, dots, dashes and underscores."
  }

  validation {
    condition     = can(timeadd(lookup(var.lab.tags, "Expires", "-"), "0s")) && can(regex("(Z|[+]00:00)$", lookup(var.lab.tags, "Expires", "-")))
    error_message = "tags: Expires must be a time in UTC such as 2026-11-20T18:00:00Z."
  }

  validation {
    condition     = var.lab.ttl_hours >= var.lab.min_ttl_hours && var.lab.ttl_hours <= var.lab.max_ttl_hours
    error_message = "ttl_hours: a lab may exist for ${var.lab.min_ttl_hours} to ${var.lab.max_ttl_hours} hours; `extend` gives an existing lab more time."
  }
}

variable "max_nodes" {
  description = "The largest number of GPU nodes in this kind of lab."
  type        = number
}

variable "shared_storage" {
  description = "Whether all nodes mount one file system at /shared."
  type        = bool
  default     = false
}

variable "head" {
  description = "A head without a GPU, in addition to the GPU nodes: its instance type, and the size of its disk in GiB. If null, the first GPU node is the head."
  type        = object({ instance_type = string, root_gb = number })
  default     = null
}

variable "inference" {
  description = "Whether the set-up also installs what the inference exercises need: transformers and vLLM."
  type        = bool
  default     = false
}

variable "setup" {
  description = "The stack's own part of the set-up: bash, run as root inside setup.sh on every node. Empty for none."
  type        = string
  default     = ""
}
