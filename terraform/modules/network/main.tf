locals {
  name = "gpucourse-${var.stack}"
}

resource "aws_vpc" "this" {
  cidr_block           = "10.77.0.0/16"
  enable_dns_support   = true
  enable_dns_hostnames = true

  tags = { Name = local.name }
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id

  tags = { Name = local.name }

  timeouts {
    delete = "5m"
  }
}

# Public, because a NAT gateway would cost more than the head of a cluster. The subnet assigns the public addresses, not the
# instance: if the instance did, the next apply would replace a stopped node.
resource "aws_subnet" "public" {
  vpc_id                  = aws_vpc.this.id
  cidr_block              = "10.77.1.0/24"
  availability_zone       = var.zone
  map_public_ip_on_launch = true

  tags = { Name = local.name }

  timeouts {
    delete = "5m"
  }

  lifecycle {
    precondition {
      condition     = startswith(var.zone, var.region)
      error_message = "The zone ${var.zone} is not in the region ${var.region}."
    }
  }
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.this.id

  tags = { Name = local.name }

  timeouts {
    delete = "5m"
  }
}

resource "aws_route" "internet" {
  route_table_id         = aws_route_table.public.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.this.id
}

resource "aws_route_table_association" "public" {
  subnet_id      = aws_subnet.public.id
  route_table_id = aws_route_table.public.id
}

# The rules are separate resources: one can be changed alone (the caller's address changed), and none blocks removing the group.
resource "aws_security_group" "nodes" {
  name_prefix            = "${local.name}-" # a fixed name would already be taken after an apply that was killed
  description            = "gpucourse: SSH from one address, everything among the nodes"
  vpc_id                 = aws_vpc.this.id
  revoke_rules_on_delete = true

  tags = { Name = local.name }

  timeouts {
    delete = "5m"
  }
}

resource "aws_vpc_security_group_ingress_rule" "ssh" {
  security_group_id = aws_security_group.nodes.id
  description       = "SSH from the learner"
  cidr_ipv4         = var.ssh_cidr
  ip_protocol       = "tcp"
  from_port         = 22
  to_port           = 22

  tags = { Name = "${local.name}-ssh" }
}

resource "aws_vpc_security_group_ingress_rule" "among_nodes" {
  security_group_id            = aws_security_group.nodes.id
  description                  = "Everything among the nodes: NCCL and NFS choose ports as they go"
  referenced_security_group_id = aws_security_group.nodes.id
  ip_protocol                  = "-1"

  tags = { Name = "${local.name}-among-nodes" }
}

resource "aws_vpc_security_group_egress_rule" "all" {
  security_group_id = aws_security_group.nodes.id
  description       = "Packages, models, containers"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"

  tags = { Name = "${local.name}-out" }
}

resource "aws_key_pair" "learner" {
  key_name_prefix = "${local.name}-"
  public_key      = trimspace(var.public_key)

  tags = { Name = local.name }
}
