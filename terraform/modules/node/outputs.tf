output "ids" {
  description = "The instances, by node."
  value       = { for name in local.names : name => aws_instance.node[local.keys[name]].id }
}

output "nodes" {
  description = "The nodes, in the form that every target of the course outputs, in the order of their numbers."
  value = [for name in local.names : {
    name            = name
    role            = local.nodes[local.keys[name]].role
    address         = aws_instance.node[local.keys[name]].public_ip
    port            = 22
    private_address = aws_instance.node[local.keys[name]].private_ip
    user            = "ubuntu"
    gpus            = var.gpus
    instance_type   = var.instance_type
    python          = local.python
    mode            = "aws"
    host_key        = "" # read from the console output, which Terraform does not see
  }]
}

output "market" {
  description = "The market in which these nodes are bought: spot or on-demand."
  value       = local.market
}

output "scripts" {
  description = "The script that each node runs at its first boot, by node."
  value       = { for name in local.names : name => module.boot[local.keys[name]].user_data }
}

output "release" {
  description = "The release of Ubuntu on the nodes, such as 24.04."
  value       = try(local.releases[local.image], 0)
}
