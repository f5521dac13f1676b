variable "tags" {
  description = "The stack's tags. Stack names the deployment, Expires is when it ends; the disks carry all of them."
  type        = map(string)
}

variable "first" {
  description = "Index of the first node made here; node0 is the head of its stack."
  type        = number
  default     = 0
}

variable "node_count" {
  description = "How many nodes are made here."
  type        = number
}

variable "instance_type" {
  description = "EC2 instance type."
  type        = string
}

variable "gpus" {
  description = "How many GPUs an instance of that type has. The first boot counts them: a node with fewer does not become ready."
  type        = number
}

variable "spot" {
  description = "One-time spot instances instead of on-demand ones."
  type        = bool
  default     = false
}

variable "image" {
  description = "What boots: `pytorch` is AWS's deep learning image with driver, CUDA and PyTorch; `ubuntu` is plain Ubuntu."
  type        = string
  default     = "pytorch"

  validation {
    condition     = contains(["pytorch", "ubuntu"], var.image)
    error_message = "The image is pytorch or ubuntu."
  }
}

variable "release" {
  description = "The release of Ubuntu that must boot, such as 24.04; 0 for the best image of whatever release."
  type        = number
  default     = 0
}

variable "root_gb" {
  description = "Size of the root disk in GiB. It is larger where the image's snapshot and free_gb together are."
  type        = number
  default     = 120
}

variable "free_gb" {
  description = "How much of the root disk is free beside the image, in GiB: for vLLM, models, checkpoints."
  type        = number
  default     = 45
}

variable "subnet_id" {
  description = "The subnet, as the network module gives it."
  type        = string
}

variable "security_group_id" {
  description = "The nodes' security group."
  type        = string
}

variable "key_name" {
  description = "The key pair that opens the nodes."
  type        = string
}

variable "placement_group" {
  description = "Cluster placement group, or null."
  type        = string
  default     = null
}

variable "ttl_hours" {
  description = "Time to live in hours, for a node that is made when its stack has expired."
  type        = number
}

variable "idle_minutes" {
  description = "After how many minutes without use a node ends itself."
  type        = number
  default     = 30

  validation {
    condition     = var.idle_minutes >= 5
    error_message = "A node that ends itself after less than 5 idle minutes would end while somebody reads its output."
  }
}

variable "shared_address" {
  description = "IPv4 address of the shared storage, mounted at /shared; empty for none."
  type        = string
  default     = ""
}

variable "inference" {
  description = "Whether the set-up also brings what the inference exercises need: transformers and vLLM."
  type        = bool
  default     = false
}

variable "setup" {
  description = "The stack's own part of the set-up: bash, run as root inside setup.sh. Empty for none."
  type        = string
  default     = ""
}
