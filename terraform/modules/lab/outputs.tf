output "nodes" {
  description = "The deployed nodes, head first, in the form that every target of the course outputs."
  value       = concat(flatten(module.head[*].nodes), module.nodes.nodes)

  precondition {
    condition     = var.lab.node_count <= var.max_nodes
    error_message = "This lab has ${var.max_nodes} GPU ${var.max_nodes == 1 ? "node" : "nodes"} at most, and ${var.lab.node_count} were asked for."
  }
}

output "scripts" {
  description = "What each node does at its first boot, by node."
  value       = merge(concat(module.head[*].scripts, [module.nodes.scripts])...)
}

output "market" {
  description = "How the GPU nodes are bought: spot or on-demand."
  value       = module.nodes.market
}

output "shared_address" {
  description = "IPv4 address of the shared storage; empty if there is none."
  value       = local.shared_address
}
