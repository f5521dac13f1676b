variable "node" {
  description = "Facts about the node, which are written to /etc/gpucourse/node.env."
  type = object({
    name           = string
    role           = string
    stack          = string
    gpus           = number
    python         = string
    expires        = string
    ttl_hours      = number
    idle_minutes   = number
    shared_address = string
  })

  validation {
    condition     = alltrue([for value in values(var.node) : can(regex("^[A-Za-z0-9._:/+-]*$", value))])
    error_message = "These values may contain only letters, digits and . _ : / + - because a shell reads them."
  }
}

variable "setup" {
  description = "The stack's own part of the set-up: bash, run as root inside setup.sh. Empty for none."
  type        = string
  default     = ""
}

variable "inference" {
  description = "Whether the set-up also installs transformers and vLLM."
  type        = bool
  default     = false
}
