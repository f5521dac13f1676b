variable "stack" {
  description = "Name of the stack: lower case letters, digits and dashes. The course names it after its module."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{0,62}$", var.stack))
    error_message = "The stack's name starts with a letter or digit and holds lower case, digits and dashes, 63 at most."
  }
}

variable "uid" {
  description = "Mark of this deployment. Every process of its nodes has it in its environment, so that none is missed."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{3,63}$", var.uid))
    error_message = "The uid has 4 to 64 letters, digits, dots, dashes and underscores, and starts with a letter or digit."
  }
}

variable "node_count" {
  description = "Number of nodes; the first one is the head."
  type        = number
  default     = 2

  validation {
    condition     = var.node_count >= 1 && floor(var.node_count) == var.node_count
    error_message = "A stack has 1 simulated node or more; the program says how many at most."
  }
}

variable "nodes_folder" {
  description = "Absolute path of the folder for the nodes' homes and keys. It is created here; destroy leaves nothing of the stack in it."
  type        = string

  validation {
    condition     = startswith(var.nodes_folder, "/")
    error_message = "The nodes' folder must be an absolute path."
  }
}

variable "python" {
  description = "Absolute path of the Python that runs the driver and the nodes' programs."
  type        = string

  validation {
    condition     = startswith(var.python, "/")
    error_message = "Python must be given as an absolute path."
  }
}

variable "driver" {
  description = "Absolute path of driver.py, which starts a node and takes nodes down."
  type        = string

  validation {
    condition     = startswith(var.driver, "/") && endswith(var.driver, ".py")
    error_message = "The driver must be given as the absolute path of a Python file."
  }
}

variable "user" {
  description = "The only user who may log in: the one who runs this."
  type        = string

  validation {
    condition     = length(trimspace(var.user)) > 0
    error_message = "A node needs the name of the one user who may log in."
  }
}

variable "public_key" {
  description = "The public SSH key for logging in to the nodes, as one line: type, then key."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,3}( [^\n]*)?\n?$", var.public_key))
    error_message = "The public key must be one line such as ssh-ed25519 AAAA..."
  }
}

variable "machines" {
  description = "Make each node a separate machine: its own host name, address, processes and sshd. Linux only; Slurm and a link need it."
  type        = bool
  default     = false
}

variable "scheduler" {
  description = "slurm: a head in addition to the nodes, and a real Slurm on all of them. Empty: no scheduler."
  type        = string
  default     = ""

  validation {
    condition     = contains(["", "slurm"], var.scheduler)
    error_message = "The scheduler must be slurm or empty."
  }
}

variable "one_host" {
  description = "With Slurm: run its daemons side by side on this computer instead of on separate machines, because namespaces are refused."
  type        = bool
  default     = false
}

variable "link" {
  description = "Speed of each machine's cable, with a delay if you like: 1gbit, or 1gbit,2ms. Empty: as fast as memory."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([0-9.]+[kmg]bit(,[0-9.]+(us|ms))?)?$", var.link))
    error_message = "A link is written as 100mbit, 1gbit or 1gbit,2ms."
  }
}

variable "layer" {
  description = "Folder into which packages were unpacked instead of being installed; it contains usr. Empty: they are installed."
  type        = string
  default     = ""
}

variable "cores" {
  description = "Number of processors that Slurm assumes for each node."
  type        = number
  default     = 4
}

variable "memory_mib" {
  description = "Memory that Slurm assumes for each node: as much as a node of a real cluster has, for jobs that ask for it. None is reserved."
  type        = number
  default     = 256000
}
