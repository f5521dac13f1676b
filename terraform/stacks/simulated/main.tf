locals {
  # With Slurm the head comes first, in addition to the counted nodes; it has no GPU.
  count    = var.node_count + (local.slurm ? 1 : 0)
  names    = [for index in range(local.count) : "node${index}"]
  slurm    = var.scheduler == "slurm"
  machines = var.machines || (local.slurm && !var.one_host) || var.link != ""

  addresses = local.machines ? { for index, name in local.names : name => "10.77.0.${10 + index}" } : {}
  specs = [for index, name in local.names : jsonencode(merge({
    name       = name
    role       = index == 0 ? "head" : "worker"
    uid        = var.uid
    user       = var.user
    python     = var.python
    public_key = trimspace(var.public_key)
    }, { for name, value in local.own : name => value if local.machines || (local.slurm && name == "slurm") }, {
    for name, value in { gpus = local.slurm && index > 0 ? 1 : 0 } : name => value if local.machines || local.slurm
  }))]

  own = {
    addresses = local.addresses
    link      = var.link
    slurm     = local.slurm ? module.slurm.files : null
    layer     = var.layer
  }

  # Values between @ signs are chosen when the daemons start: free ports, and a folder whose name is short enough for a socket.
  shared = {
    host = "@HOST@"
    more = ["SlurmdUser=@USER@", "AuthInfo=socket=@FOLDER@/munge.sock", "TaskProlog=@FOLDER@/slurm/task", "FirstJobId=@FIRST@"]
    daemons = {
      user = "@USER@", port = "@PORT_slurmctld@", suffix = ".%n"
      run  = "@FOLDER@/slurm", state = "@FOLDER@/slurm/state", logs = "@FOLDER@/slurm/log"
    }
  }
}

module "slurm" {
  source = "../../modules/slurm"

  head       = local.machines ? { name = "node0", address = "10.77.0.10" } : { name = local.shared.host, address = "127.0.0.1" }
  names      = local.count > 2 ? "node[1-${local.count - 1}]" : "node1"
  patience_s = 15
  workers = [for index in range(1, local.count) : join(" ", [
    "NodeName=node${index}",
    local.machines ? "NodeAddr=10.77.0.${10 + index}" : "NodeHostname=${local.shared.host} NodeAddr=127.0.0.1 Port=@PORT_node${index}@",
    "CPUs=${var.cores} RealMemory=${var.memory_mib} Gres=gpu:1 State=UNKNOWN",
  ])]

  more    = local.machines ? [] : local.shared.more
  devices = local.machines ? "/dev/nvidia0" : "/dev/null" # an empty device that Slurm counts as a GPU
  daemons = local.machines ? null : local.shared.daemons
}

# Takes the whole lab down with one call of the driver. Creating this resource does nothing, so it cannot fail and is never
# tainted: Terraform does not run the destroy-time provisioners of a tainted resource. It is created before any node.
resource "terraform_data" "lab" {
  input = {
    folder = var.nodes_folder
    spec   = jsonencode({ uid = var.uid, count = 0 })
    python = var.python
    driver = var.driver
  }

  provisioner "local-exec" {
    when        = destroy
    interpreter = [self.input.python, "-I", "-S", self.input.driver, "trim"]
    command     = self.input.folder
    environment = { GPUCOURSE_NODE_SPEC = self.input.spec }
  }
}

# A node may fail. The driver's `up` is safe to repeat, so the next apply repairs it. Terraform writes its whole state after every
# resource, so a node keeps no more than the output needs.
resource "terraform_data" "node" {
  count = local.count

  input            = "${var.nodes_folder}/${local.names[count.index]}.json"
  triggers_replace = sha256("${terraform_data.lab.id} ${var.nodes_folder} ${local.specs[count.index]}")

  provisioner "local-exec" {
    interpreter = [var.python, "-I", "-S", var.driver, "up"] # no shell: a cancel reaches the driver itself
    command     = self.input
    environment = { GPUCOURSE_NODE_SPEC = local.specs[count.index], GPUCOURSE_DRIVER_UID = var.uid } # it may outlive Terraform
  }
}

# If there are fewer nodes than before, the driver removes the others: Terraform only forgets them. Created again whenever the
# number changes.
resource "terraform_data" "size" {
  triggers_replace = [terraform_data.lab.id, local.count]
  depends_on       = [terraform_data.node]

  provisioner "local-exec" {
    interpreter = [var.python, "-I", "-S", var.driver, "trim"]
    command     = var.nodes_folder
    environment = { GPUCOURSE_NODE_SPEC = jsonencode({ uid = var.uid, count = local.count }) }
  }
}
