variable "stack" {
  description = "Name of the deployment; what is made here is named after it."
  type        = string
}

variable "subnet_id" {
  description = "The nodes' subnet. The mount target stands in it: traffic within one zone is free and fast."
  type        = string
}

variable "security_group_id" {
  description = "The nodes' security group; its rule for itself lets NFS through."
  type        = string
}
