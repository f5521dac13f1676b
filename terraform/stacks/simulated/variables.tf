variable "stack" {
  description = "Name of the stack, in lowercase letters, digits and dashes. The course names it after its module."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{0,62}$", var.stack))
    error_message = "The stack's name must start with a letter or digit, and have at most 63 lowercase letters, digits and dashes."
  }
}

variable "uid" {
  description = "Mark of this deployment. It is in the environment of every process of the nodes, so that each one can be found."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{3,63}$", var.uid))
    error_message = "The uid must have 4 to 64 letters, digits, dots, dashes and underscores, and start with a letter or digit."
  }
}

variable "node_count" {
  description = "Number of nodes; the first one is the head."
  type        = number
  default     = 2

  validation {
    condition     = var.node_count >= 1 && floor(var.node_count) == var.node_count
    error_message = "A stack must have at least 1 simulated node; the program sets the maximum."
  }
}

variable "nodes_folder" {
  description = "Absolute path of the folder for the nodes' homes and keys. The folder is created here; destroy removes everything of the stack from it."
  type        = string

  validation {
    condition     = startswith(var.nodes_folder, "/")
    error_message = "The nodes' folder must be an absolute path."
  }
}

variable "python" {
  description = "Absolute path of the Python interpreter that runs the driver and the nodes' programs."
  type        = string

  validation {
    condition     = startswith(var.python, "/")
    error_message = "Python must be given as an absolute path."
  }
}

variable "driver" {
  description = "Absolute path of driver.py, which starts and removes nodes."
  type        = string

  validation {
    condition     = startswith(var.driver, "/") && endswith(var.driver, ".py")
    error_message = "The driver must be given as the absolute path of a Python file."
  }
}

variable "user" {
  description = "The only user who may log in, which is the user who runs this."
  type        = string

  validation {
    condition     = length(trimspace(var.user)) > 0
    error_message = "A node needs the name of the one user who may log in."
  }
}

variable "public_key" {
  description = "The public SSH key for logging in to the nodes, as one line with the type and the key."
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
  description = "slurm: a head in addition to the nodes, and a real Slurm on all machines. Empty: no scheduler."
  type        = string
  default     = ""

  validation {
    condition     = contains(["", "slurm"], var.scheduler)
    error_message = "The scheduler must be slurm or empty."
  }
}

variable "one_host" {
  description = "With Slurm: run its daemons side by side on this computer instead of on separate machines, for systems that refuse namespaces."
  type        = bool
  default     = false
}

variable "link" {
  description = "Speed of each machine's cable, with an optional delay: 1gbit, or 1gbit,2ms. Empty: as fast as memory."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([0-9.]+[kmg]bit(,[0-9.]+(us|ms))?)?$", var.link))
    error_message = "A link is written as 100mbit, 1gbit or 1gbit,2ms."
  }
}

variable "layer" {
  description = "Folder into which packages were unpacked instead of being installed; it contains usr. Empty if the packages are installed."
  type        = string
  default     = ""
}

variable "cores" {
  description = "Number of processors that Slurm assumes for each node."
  type        = number
  default     = 4
}

variable "memory_mib" {
  description = "Memory in MiB that Slurm assumes for each node: as much as a real node has, for jobs that request it. No memory is reserved."
  type        = number
  default     = 256000
}
