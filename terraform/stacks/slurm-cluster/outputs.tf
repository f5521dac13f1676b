output "nodes" {
  description = "The nodes that stand, head first: the one shape that every target of the course hands over."
  value       = concat(module.head.nodes, module.workers.nodes)
}
