output "nodes" {
  description = "The nodes that stand, head first: the one shape that every target of the course hands over."
  value       = module.nodes.nodes
}
