# Every file of /etc/slurm, for simulated machines, for nodes that share one computer, and for machines on AWS: one template.

terraform {
  required_version = ">= 1.4"
}

variable "head" {
  description = "The machine on which slurmctld runs."
  type        = object({ name = string, address = string })
}

variable "names" {
  description = "The nodes on which jobs run, as a list in Slurm's notation: node[1-3]."
  type        = string
}

variable "workers" {
  description = "One NodeName line per node."
  type        = list(string)
}

variable "more" {
  description = "Further lines of slurm.conf, placed before the nodes' lines."
  type        = list(string)
  default     = []
}

variable "devices" {
  description = "The device files of a node's GPUs, in the notation of gres.conf: /dev/nvidia0, or /dev/nvidia[0-3]."
  type        = string
  default     = "/dev/nvidia0"
}

variable "daemons" {
  description = "The user of slurmctld, its port, and the folders that the daemons write to; `suffix` is appended to slurmd's name (%n)."
  type        = object({ user = string, port = string, run = string, state = string, logs = string, suffix = string })
  default     = { user = "slurm", port = "6817", run = "/run", state = "/var/lib/slurm", logs = "/var/log/slurm", suffix = "" }
  nullable    = false
}

variable "patience_s" {
  description = "Seconds after which a node that does not answer counts as down, and its job is restarted elsewhere."
  type        = number
}

output "files" {
  description = "The name and the content of each file."
  value = {
    "slurm.conf" = templatefile("${path.module}/slurm.conf.tftpl", {
      head       = var.head
      names      = var.names
      lines      = join("\n", concat(var.more, var.workers))
      daemons    = var.daemons
      patience_s = var.patience_s
    })
    "gres.conf" = templatefile("${path.module}/gres.conf.tftpl", { devices = var.devices }) # without File the count is 0, and Slurm rejects the node

    # This prevents a search for cgroups: otherwise, slurmd of 22.05 and 23.11 ends if it finds none that it knows.
    "cgroup.conf" = file("${path.module}/cgroup.conf")

    # This file must exist: without it, 23.11 fails to load a plugin, and that error makes every reason for which a job
    # waits wrong if there is no accounting.
    "mpi.conf"       = ""
    "plugstack.conf" = ""
  }
}
