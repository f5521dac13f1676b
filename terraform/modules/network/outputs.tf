output "vpc_id" {
  description = "The VPC: everything of the stack is in it."
  value       = aws_vpc.this.id
}

# Whoever uses the subnet waits until it really has the internet and is open to the caller, and is gone before it loses either.
# Without this an instance boots before its route stands, and the gateway goes while an instance still needs it.
output "subnet_id" {
  description = "The subnet, once its traffic flows."
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
  description = "The one security group of all nodes and of the shared storage."
  value       = aws_security_group.nodes.id
}

output "key_name" {
  description = "The key pair that opens the nodes."
  value       = aws_key_pair.learner.key_name
}
