locals {
  # The id is not known before the node exists, so the file is read after it was written. A missing file gives null, so that
  # destroy does not fail.
  descriptions = [for node in terraform_data.node : try(jsondecode(file(node.id == "" ? "" : node.output)), null)]
}

output "nodes" {
  description = "The deployed nodes, head first, in the form that every target of the course outputs."
  value = [for node in local.descriptions : {
    name            = node.name
    role            = node.role
    address         = node.address
    port            = node.port
    private_address = node.private_address
    user            = node.user
    gpus            = node.gpus
    instance_type   = node.instance_type
    python          = node.python
    mode            = node.mode
    host_key        = node.host_key
  } if node != null]
}
