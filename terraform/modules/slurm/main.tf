# Every file of /etc/slurm, for simulated machines, for nodes that share one computer, and for machines on AWS: one template.

terraform {
  required_version = ">= 1.4"
}

variable "head" {
  description = "The machine that slurmctld runs on."
  type        = object({ name = string, address = string })
}

variable "names" {
  description = "The nodes that jobs run on, as Slurm writes a list of them: node[1-3]."
  type        = string
}

variable "workers" {
  description = "One NodeName line per node."
  type        = list(string)
}

variable "more" {
  description = "Further lines of slurm.conf, before those of the nodes."
  type        = list(string)
  default     = []
}

variable "devices" {
  description = "The device files of a node's GPUs, as gres.conf writes them: /dev/nvidia0, or /dev/nvidia[0-3]."
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
  description = "Seconds until a node that does not answer counts as down, and its job starts again elsewhere."
  type        = number
}

output "files" {
  description = "Name and content of each file."
  value = {
    "slurm.conf" = templatefile("${path.module}/slurm.conf.tftpl", {
      head       = var.head
      names      = var.names
      lines      = join("\n", concat(var.more, var.workers))
      daemons    = var.daemons
      patience_s = var.patience_s
    })
    "gres.conf" = templatefile("${path.module}/gres.conf.tftpl", { devices = var.devices }) # without File the count is 0, and Slurm rejects the node

    # With this nothing looks for cgroups: slurmd of 22.05 and 23.11 would, and end where it finds none that it knows.
    "cgroup.conf" = file("${path.module}/cgroup.conf")

    # There must be one: without it 23.11 fails to load a plugin, and what is left of that error makes every reason
    # that a job waits for wrong where there is no accounting.
    "mpi.conf"       = ""
    "plugstack.conf" = ""
  }
}
