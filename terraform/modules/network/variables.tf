variable "stack" {
  description = "Name of the deployment; the resources are named after it."
  type        = string
}

variable "region" {
  description = "The provider's region. The zone must be in it."
  type        = string
}

variable "zone" {
  description = "The availability zone of the subnet, such as us-east-2a."
  type        = string
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
  description = "The public SSH key for logging in to the nodes, as one line with the type and the key."
  type        = string
}
