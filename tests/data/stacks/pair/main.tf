# A stack of nodes that are built and removed by a small Python program: each has a slot, which removes it.
terraform {
  required_version = ">= 1.4"
}

variable "node_count" {
  type        = number
  description = "How many nodes."
}

variable "python" {
  type        = string
  description = "The interpreter that runs the commands."
}

variable "folder" {
  type        = string
  description = "Where the nodes leave their marks."
}

resource "terraform_data" "slot" {
  count = var.node_count
  input = {
    python = var.python
    marks  = "${var.folder}/node${count.index}"
    script = abspath("${path.module}/node.py")
  }
  provisioner "local-exec" {
    when        = destroy
    interpreter = [self.input.python, self.input.script, "down"]
    command     = self.input.marks
  }
}

resource "terraform_data" "node" {
  count            = var.node_count
  input            = terraform_data.slot[count.index].output
  triggers_replace = terraform_data.slot[count.index].id
  provisioner "local-exec" {
    interpreter = [var.python, abspath("${path.module}/node.py"), "up"]
    command     = self.input.marks
  }
}

output "nodes" {
  value = [for index, node in terraform_data.node : fileexists(node.id == "" ? "" : "${node.input.marks}.up") ? {
    name            = "node${index}"
    role            = index == 0 ? "head" : "worker"
    address         = "127.0.0.1"
    port            = 20000 + index
    private_address = "127.0.0.1"
    user            = "learner"
    gpus            = 0
    instance_type   = "simulated"
    python          = var.python
    mode            = "local"
  } : null]
}
