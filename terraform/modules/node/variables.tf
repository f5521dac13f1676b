variable "tags" {
  description = "The stack's tags. Stack is the name of the deployment, and Expires the time at which it ends. The disks get all the tags, too."
  type        = map(string)
}

variable "first" {
  description = "Index of the first node created here; node0 is the head of its stack."
  type        = number
  default     = 0
}

variable "node_count" {
  description = "Number of nodes to create here."
  type        = number
}

variable "instance_type" {
  description = "EC2 instance type."
  type        = string
}

variable "gpus" {
  description = "Number of GPUs in an instance of that type. The first boot counts them, and a node with fewer does not become ready."
  type        = number
}

variable "spot" {
  description = "Use one-time spot instances instead of on-demand ones."
  type        = bool
  default     = false
}

variable "image" {
  description = "The image: `pytorch` is AWS's deep learning image with driver, CUDA and PyTorch; `ubuntu` is plain Ubuntu."
  type        = string
  default     = "pytorch"

  validation {
    condition     = contains(["pytorch", "ubuntu"], var.image)
    error_message = "The image is pytorch or ubuntu."
  }
}

variable "release" {
  description = "The required release of Ubuntu, such as 24.04, or 0 for the best image of any release."
  type        = number
  default     = 0
}

variable "root_gb" {
  description = "Size of the root disk in GiB. The disk is larger if the image's snapshot and free_gb together need more."
  type        = number
  default     = 120
}

variable "free_gb" {
  description = "Free space on the root disk in addition to the image, in GiB: for vLLM, models, checkpoints."
  type        = number
  default     = 45
}

variable "subnet_id" {
  description = "The subnet, as output by the network module."
  type        = string
}

variable "security_group_id" {
  description = "The nodes' security group."
  type        = string
}

variable "key_name" {
  description = "The key pair for logging in to the nodes."
  type        = string
}

variable "placement_group" {
  description = "Cluster placement group, or null."
  type        = string
  default     = null
}

variable "ttl_hours" {
  description = "Time to live in hours, for a node that is created after its stack has expired."
  type        = number
}

variable "idle_minutes" {
  description = "Minutes without use after which a node ends itself."
  type        = number
  default     = 30

  validation {
    condition     = var.idle_minutes >= 5
    error_message = "idle_minutes must be at least 5: otherwise a node would end while somebody reads its output."
  }
}

variable "shared_address" {
  description = "IPv4 address of the shared storage, mounted at /shared; empty for none."
  type        = string
  default     = ""
}

variable "inference" {
  description = "Whether the set-up also installs what the inference exercises need: transformers and vLLM."
  type        = bool
  default     = false
}

variable "setup" {
  description = "The stack's own part of the set-up: bash, run as root inside setup.sh. Empty for none."
  type        = string
  default     = ""
}
