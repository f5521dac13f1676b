locals {
  names = [for index in range(var.node_count) : "node${index}"]
  specs = [for index, name in local.names : jsonencode({
    name       = name
    role       = index == 0 ? "head" : "worker"
    uid        = var.uid
    user       = var.user
    python     = var.python
    public_key = trimspace(var.public_key)
  })]
}

# A slot has nothing that can fail at its creation, so it is never tainted, so taking its node down is never skipped: Terraform
# does not run the destroy-time provisioners of a tainted resource.
resource "terraform_data" "slot" {
  count = var.node_count

  # Terraform writes its whole state after every resource, so a slot keeps no more than taking down needs.
  input = {
    file   = "${var.nodes_folder}/${local.names[count.index]}.json"
    spec   = jsonencode({ name = local.names[count.index], uid = var.uid })
    python = var.python
    driver = var.driver
  }

  provisioner "local-exec" {
    when        = destroy
    interpreter = [self.input.python, "-I", "-S", self.input.driver, "down"]
    command     = self.input.file
    environment = { GPUCOURSE_NODE_SPEC = self.input.spec }
  }
}

# A node may fail. The driver's `up` is safe to repeat, so the next apply heals it.
resource "terraform_data" "node" {
  count = var.node_count

  input            = terraform_data.slot[count.index].output.file
  triggers_replace = sha256("${terraform_data.slot[count.index].id} ${var.nodes_folder} ${local.specs[count.index]}")

  provisioner "local-exec" {
    interpreter = [var.python, "-I", "-S", var.driver, "up"] # no shell: a cancel reaches the driver itself
    command     = self.input
    environment = { GPUCOURSE_NODE_SPEC = local.specs[count.index] }
  }
}
