variable "stack" {
  description = "Name of the deployment; the resources are named after it."
  type        = string
}

variable "subnet_id" {
  description = "The nodes' subnet. The mount target is in it, because traffic within one zone is free and fast."
  type        = string
}

variable "security_group_id" {
  description = "The nodes' security group; its rule for itself lets NFS through."
  type        = string
}
