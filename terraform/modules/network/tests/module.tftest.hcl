# The promises of the network, checked by an apply against a mocked provider, so that ids can be compared. Nothing is sent to AWS.

mock_provider "aws" {}

variables {
  stack      = "w1-0123456789ab"
  region     = "us-east-2"
  zone       = "us-east-2b"
  ssh_cidr   = "203.0.113.7/32"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG9uZSBrZXkgZm9yIHRoZSB0ZXN0cyBvZiB0aGUgc3RhY2s= a comment\n"
}

run "ssh_is_open_to_the_caller_alone" {
  assert {
    condition = (
      aws_vpc_security_group_ingress_rule.ssh.cidr_ipv4 == "203.0.113.7/32"
      && aws_vpc_security_group_ingress_rule.ssh.ip_protocol == "tcp"
      && aws_vpc_security_group_ingress_rule.ssh.from_port == 22
      && aws_vpc_security_group_ingress_rule.ssh.to_port == 22
      && aws_vpc_security_group_ingress_rule.ssh.cidr_ipv6 == null
      && aws_vpc_security_group_ingress_rule.ssh.prefix_list_id == null
    )
    error_message = "Port 22 is open to the caller's address, and to nobody else."
  }
}

run "nodes_reach_each_other_on_every_port" {
  assert {
    condition = (
      aws_vpc_security_group_ingress_rule.among_nodes.ip_protocol == "-1"
      && aws_vpc_security_group_ingress_rule.among_nodes.referenced_security_group_id == aws_security_group.nodes.id
      && aws_vpc_security_group_ingress_rule.among_nodes.cidr_ipv4 == null
    )
    error_message = "NCCL, torchrun and NFS use ports that are not known beforehand; only the group itself has access."
  }
}

run "rules_belong_to_the_one_group_and_go_with_it" {
  assert {
    condition = alltrue([
      for group in [
        aws_vpc_security_group_ingress_rule.ssh.security_group_id,
        aws_vpc_security_group_ingress_rule.among_nodes.security_group_id,
        aws_vpc_security_group_egress_rule.all.security_group_id,
      ] : group == aws_security_group.nodes.id
    ])
    error_message = "There is one group, to which every rule belongs."
  }

  assert {
    condition     = aws_security_group.nodes.revoke_rules_on_delete
    error_message = "Rules that refer to each other would keep the group from being deleted."
  }
}

run "one_public_subnet_in_the_zone_that_was_chosen" {
  assert {
    condition = (
      aws_subnet.public.availability_zone == "us-east-2b"
      && aws_subnet.public.map_public_ip_on_launch
      && aws_subnet.public.vpc_id == aws_vpc.this.id
      && aws_route_table_association.public.subnet_id == aws_subnet.public.id
      && aws_route_table_association.public.route_table_id == aws_route_table.public.id
    )
    error_message = "The nodes are in one zone of our own VPC and have public addresses."
  }
}

run "the_way_out_is_a_gateway_that_costs_nothing" {
  assert {
    condition = (
      aws_route.internet.gateway_id == aws_internet_gateway.this.id
      && aws_route.internet.nat_gateway_id == null
      && aws_route.internet.destination_cidr_block == "0.0.0.0/0"
      && aws_route.internet.route_table_id == aws_route_table.public.id
    )
    error_message = "Traffic leaves through the internet gateway: a NAT gateway costs more than the head of a cluster."
  }
}

run "a_stuck_deletion_is_told_within_minutes" {
  assert {
    condition = alltrue([
      for limit in [
        aws_security_group.nodes.timeouts.delete, aws_subnet.public.timeouts.delete,
        aws_internet_gateway.this.timeouts.delete, aws_route_table.public.timeouts.delete,
      ] : limit == "5m"
    ])
    error_message = "Deleting a resource that is still in use fails after five minutes, not after twenty."
  }
}

run "no_name_is_taken_after_a_killed_apply" {
  assert {
    condition     = startswith(aws_security_group.nodes.name_prefix, "gpucourse-w1-0123456789ab-") && startswith(aws_key_pair.learner.key_name_prefix, "gpucourse-w1-0123456789ab-")
    error_message = "Names have a new suffix each time: a resource that a killed Terraform forgot must not stop the next one."
  }
}

run "refuses_the_whole_internet" {
  command = plan
  variables {
    ssh_cidr = "0.0.0.0/0"
  }
  expect_failures = [var.ssh_cidr]
}

run "refuses_a_network_of_callers" {
  command = plan
  variables {
    ssh_cidr = "203.0.113.0/24"
  }
  expect_failures = [var.ssh_cidr]
}

run "refuses_the_unspecified_address" {
  command = plan
  variables {
    ssh_cidr = "0.0.0.0/32"
  }
  expect_failures = [var.ssh_cidr]
}

run "refuses_an_address_without_its_length" {
  command = plan
  variables {
    ssh_cidr = "203.0.113.7"
  }
  expect_failures = [var.ssh_cidr]
}

run "refuses_an_ipv6_caller" {
  command = plan
  variables {
    ssh_cidr = "2001:db8::7/32"
  }
  expect_failures = [var.ssh_cidr]
}

run "refuses_a_zone_of_another_region" {
  command = plan
  variables {
    zone = "us-west-2a"
  }
  expect_failures = [aws_subnet.public]
}
