output "vpc_id" {
  description = "The VPC that contains the whole stack."
  value       = aws_vpc.this.id
}

# Whatever uses the subnet is created after its route and the SSH rule, and destroyed before them. Without this an instance would
# boot before its route exists, and the gateway would go while an instance still needs it.
output "subnet_id" {
  description = "The subnet, once its route and rules are in place."
  value       = aws_subnet.public.id
  depends_on = [
    aws_route.internet,
    aws_route_table_association.public,
    aws_vpc_security_group_ingress_rule.ssh,
    aws_vpc_security_group_ingress_rule.among_nodes,
    aws_vpc_security_group_egress_rule.all,
  ]
}

output "security_group_id" {
  description = "The security group of all nodes and of the shared storage."
  value       = aws_security_group.nodes.id
}

output "key_name" {
  description = "The key pair for logging in to the nodes."
  value       = aws_key_pair.learner.key_name
}
