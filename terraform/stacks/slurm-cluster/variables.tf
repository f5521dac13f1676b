variable "region" {
  description = "AWS region."
  type        = string
  default     = "us-east-2"

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]+$", var.region))
    error_message = "A region is written like us-east-2."
  }
}

variable "zone" {
  description = "The one availability zone that everything stands in, such as us-east-2a."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]+[a-z]$", var.zone))
    error_message = "A zone is written like us-east-2a."
  }
}

variable "instance_type" {
  description = "EC2 instance type of the GPU nodes. The head is a t3.medium."
  type        = string
  default     = "g4dn.xlarge"

  validation {
    condition     = can(regex("^(g4dn|g5|g6|g6e|gr6|p4d|p4de|p5)[.][a-z0-9]+$", var.instance_type))
    error_message = "The nodes need an NVIDIA GPU: g4dn (T4), g5 (A10G), g6 (L4), g6e (L40S) or p5 (H100). AWS has retired p3 (V100)."
  }
}

variable "node_count" {
  description = "How many GPU nodes stand, beside the head."
  type        = number
  default     = 3

  validation {
    condition     = var.node_count >= 1 && var.node_count <= 8 && floor(var.node_count) == var.node_count
    error_message = "A cluster has 1 to 8 GPU nodes."
  }
}

variable "spot" {
  description = "One-time spot instances instead of on-demand ones: cheaper, and AWS may take them back with two minutes' notice."
  type        = bool
  default     = false
}

variable "ssh_cidr" {
  description = "The one address that may log in, as <IPv4>/32."
  type        = string

  validation {
    condition     = can(regex("^[0-9.]+/32$", var.ssh_cidr)) && can(cidrhost(var.ssh_cidr, 0)) && !startswith(var.ssh_cidr, "0.")
    error_message = "SSH is open to one IPv4 address only, written as 203.0.113.7/32; 0.0.0.0/0 is refused."
  }
}

variable "public_key" {
  description = "The public SSH key that opens the nodes, as one line: type, then key."
  type        = string

  validation {
    condition     = can(regex("^(ssh-ed25519|ssh-rsa) [A-Za-z0-9+/]+={0,3}( [^\n]*)?\n?$", var.public_key))
    error_message = "The public key is one line such as ssh-ed25519 AAAA...; EC2 takes ed25519 and RSA keys."
  }
}

variable "tags" {
  description = "Tags of every resource: Project, Course, Module, Owner, Stack (the deployment), Expires (its end, UTC)."
  type        = map(string)

  validation {
    condition     = lookup(var.tags, "Project", "") == "gpucourse" && length(setsubtract(["Course", "Module", "Owner", "Stack", "Expires"], keys(var.tags))) == 0
    error_message = "Without the tags Project = gpucourse, Course, Module, Owner, Stack and Expires nothing could be found and removed later."
  }

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{3,63}$", lookup(var.tags, "Stack", "none")))
    error_message = "The tag Stack has 4 to 64 letters, digits, dots, dashes and underscores."
  }

  validation {
    condition     = can(timeadd(lookup(var.tags, "Expires", "-"), "0s")) && can(regex("(Z|[+]00:00)$", lookup(var.tags, "Expires", "-")))
    error_message = "The tag Expires is a time in UTC such as 2026-11-20T18:00:00Z."
  }
}

variable "ttl_hours" {
  description = "Time to live in hours. A node ends itself at Expires; one that is made after that gets this long."
  type        = number
  default     = 4

  validation {
    condition     = var.ttl_hours >= 0.25 && var.ttl_hours <= 72
    error_message = "A lab lives a quarter of an hour to 72 hours; `extend` gives it more while it stands."
  }
}
