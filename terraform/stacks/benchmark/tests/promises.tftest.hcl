# What this stack promises. The provider is mocked: nothing is asked of AWS. What the network, the nodes and the storage promise by
# themselves is tested beside them, in ../../modules.

mock_provider "aws" {
  mock_data "aws_ssm_parameters_by_path" {
    defaults = {
      names  = ["/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.12-ubuntu-24.04/latest/ami-id"]
      values = ["ami-00000000000000212"]
    }
  }
}

variables {
  zone       = "us-east-2a"
  ssh_cidr   = "203.0.113.7/32"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG9uZSBrZXkgZm9yIHRoZSB0ZXN0cyBvZiB0aGUgc3RhY2s= a comment\n"
  tags = {
    Project = "gpucourse"
    Course  = "w1"
    Module  = "4"
    Owner   = "ada"
    Stack   = "w1-0123456789ab"
    Expires = "2026-11-20T18:00:00Z"
  }
}

run "one_node_with_the_gpu_to_measure" {
  assert {
    condition     = [for node in output.nodes : join(" ", [node.name, node.role, node.instance_type, node.gpus, node.python])] == ["node0 head g4dn.xlarge 1 /opt/pytorch/bin/python"]
    error_message = "One node, the head of itself."
  }

  assert {
    condition = alltrue([
      for node in output.nodes :
      keys(node) == ["address", "gpus", "host_key", "instance_type", "mode", "name", "port", "private_address", "python", "role", "user"]
      && node.port == 22 && node.user == "ubuntu" && node.mode == "aws" && node.host_key == "" && node.address != "" && node.private_address != ""
    ])
    error_message = "Every target of the course hands over nodes in this one shape."
  }
}

run "any_gpu_of_the_course" {
  command = plan
  variables {
    instance_type = "p5.4xlarge"
  }
  assert {
    condition     = output.nodes[0].gpus == 1 && output.nodes[0].instance_type == "p5.4xlarge"
    error_message = "An H100 is measured in the same stack."
  }
}

run "spot_only_where_it_is_asked_for" {
  command = plan
  variables {
    spot = true
  }
  assert {
    condition     = module.nodes.market == "spot"
    error_message = "A learner who asks for spot gets spot."
  }
}

run "refuses_an_address_range" {
  command = plan
  variables {
    ssh_cidr = "0.0.0.0/0"
  }
  expect_failures = [var.ssh_cidr]
}

run "refuses_what_it_is_not_made_for" {
  command = plan
  variables {
    instance_type = "p3.2xlarge" # V100, which AWS has retired
    node_count    = 5
    ttl_hours     = 100
    region        = "Ohio"
    zone          = "us-east-2"
    public_key    = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"
  }
  expect_failures = [var.instance_type, var.node_count, var.ttl_hours, var.region, var.zone, var.public_key]
}

run "refuses_what_no_sweep_would_find" {
  command = plan
  variables {
    tags = { Project = "another", Stack = "a$b", Expires = "tomorrow" }
  }
  expect_failures = [var.tags]
}
