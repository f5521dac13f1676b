output "nodes" {
  description = "The deployed nodes, head first, in the form that every target of the course outputs."
  value       = concat(flatten(module.head[*].nodes), module.nodes.nodes)

  precondition {
    condition     = var.lab.node_count <= var.max_nodes
    error_message = "This lab has at most ${var.max_nodes} GPU ${var.max_nodes == 1 ? "node" : "nodes"}, but ${var.lab.node_count} were requested."
  }
}

output "scripts" {
  description = "The script that each node runs at its first boot, by node."
  value       = merge(concat(module.head[*].scripts, [module.nodes.scripts])...)
}

output "market" {
  description = "The market in which the GPU nodes are bought: spot or on-demand."
  value       = module.nodes.market
}

output "shared_address" {
  description = "IPv4 address of the shared storage; empty if there is none."
  value       = local.shared_address
}
