# The promises of every lab on AWS, whatever its stack. The provider is mocked: nothing is sent to AWS. The network, the nodes and the
# storage have their own tests.

mock_provider "aws" {
  mock_data "aws_ssm_parameters_by_path" {
    defaults = {
      names  = ["/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.12-ubuntu-24.04/latest/ami-id", "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"]
      values = ["ami-00000000000000212", "ami-00000000000002404"]
    }
  }
}

variables {
  max_nodes      = 8
  shared_storage = true
  lab = {
    region          = "us-east-2"
    instance_type   = "g4dn.2xlarge"
    gpus            = 1
    node_count      = 2
    spot            = false
    placement_group = true
    ttl_hours       = 4
    min_ttl_hours   = 0.25
    max_ttl_hours   = 72
    zone            = "us-east-2a"
    ssh_cidr        = "203.0.113.7/32"
    public_key      = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG9uZSBrZXkgZm9yIHRoZSB0ZXN0cyBvZiB0aGUgc3RhY2s= a comment\n"
    tags = {
      Project = "gpucourse"
      Course  = "w1"
      Module  = "3"
      Owner   = "ada"
      Stack   = "w1-0123456789ab"
      Expires = "2026-11-20T18:00:00Z"
    }
  }
}

run "two_nodes_head_first" {
  assert {
    condition     = [for node in output.nodes : join(" ", [node.name, node.role, node.instance_type, node.gpus, node.python])] == ["node0 head g4dn.2xlarge 1 /opt/pytorch/bin/python", "node1 worker g4dn.2xlarge 1 /opt/pytorch/bin/python"]
    error_message = "Two nodes, the first one is the head."
  }

  assert {
    condition = alltrue([
      for node in output.nodes :
      keys(node) == ["address", "gpus", "host_key", "instance_type", "mode", "name", "port", "private_address", "python", "role", "user"]
      && node.port == 22 && node.user == "ubuntu" && node.mode == "aws" && node.host_key == "" && node.address != "" && node.private_address != ""
    ])
    error_message = "Every target of the course outputs nodes in this form."
  }

  assert {
    condition     = output.shared_address != "" && alltrue([for script in output.scripts : strcontains(script, "\nSHARED_ADDRESS=${output.shared_address}\n")])
    error_message = "Each node reads the other's checkpoints."
  }

  assert {
    condition     = length(aws_placement_group.close) == 1 && alltrue([for group in aws_placement_group.close : group.strategy == "cluster"])
    error_message = "A cluster placement group gives a single flow twice the bandwidth."
  }
}

run "a_head_of_its_own" {
  variables {
    head  = { instance_type = "t3.medium", root_gb = 30 }
    setup = "echo of every node"
    lab   = merge(var.lab, { spot = true, placement_group = false })
  }
  assert {
    condition     = [for node in output.nodes : join(" ", [node.name, node.role, node.instance_type, node.gpus])] == ["node0 head t3.medium 0", "node1 worker g4dn.2xlarge 1", "node2 worker g4dn.2xlarge 1"]
    error_message = "A head without a GPU, then the GPU nodes."
  }
  assert {
    condition     = length(output.scripts) == 3 && alltrue([for script in output.scripts : strcontains(script, "echo of every node") && strcontains(script, "\nSHARED_ADDRESS=${output.shared_address}\n")])
    error_message = "The stack's set-up and the shared storage are part of every first boot."
  }
  assert {
    condition     = module.nodes.market == "spot" && module.head[0].market == "on-demand"
    error_message = "Losing the head loses the cluster: it is on demand, whatever the GPU nodes are."
  }
}

run "the_head_boots_the_release_of_the_nodes" {
  command = plan
  variables {
    head = { instance_type = "t3.medium", root_gb = 30 }
  }
  override_data {
    target = module.nodes.data.aws_ssm_parameters_by_path.images
    values = {
      names  = ["/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.13-ubuntu-26.04/latest/ami-id"]
      values = ["ami-00000000000000213"]
    }
  }
  override_data {
    target = module.head[0].data.aws_ssm_parameters_by_path.images
    values = {
      names  = ["/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id", "/aws/service/canonical/ubuntu/server/26.04/stable/current/amd64/hvm/ebs-gp3/ami-id"]
      values = ["ami-00000000000002404", "ami-00000000000002604"]
    }
  }
  assert {
    condition     = module.nodes.release == 26.04 && module.head[0].release == 26.04
    error_message = "The Slurms of two releases cannot communicate with each other."
  }
}

run "anywhere_in_the_zone_where_there_is_no_room" {
  command = plan
  variables {
    lab = merge(var.lab, { placement_group = false })
  }
  assert {
    condition     = length(aws_placement_group.close) == 0 && length(output.nodes) == 2
    error_message = "Without the group, AWS has room more often; the nodes are the same."
  }
}

run "no_storage_where_none_is_asked_for" {
  command = plan
  variables {
    lab            = merge(var.lab, { node_count = 1 })
    shared_storage = false
  }
  assert {
    condition     = length(module.storage) == 0 && output.shared_address == ""
    error_message = "A file system that nobody mounts would be billed."
  }
}

run "spot_only_where_it_is_asked_for" {
  command = plan
  variables {
    lab = merge(var.lab, { spot = true })
  }
  assert {
    condition     = output.market == "spot"
    error_message = "A learner who asks for spot gets spot."
  }
}

run "refuses_a_region_that_is_none" {
  command = plan
  variables {
    lab = merge(var.lab, { region = "Ohio" })
  }
  expect_failures = [var.lab]
}

run "refuses_a_zone_that_is_none" {
  command = plan
  variables {
    lab = merge(var.lab, { zone = "us-east-2" })
  }
  expect_failures = [var.lab]
}

run "takes_a_type_that_only_the_table_of_gpus_knows" {
  command = plan
  variables {
    lab = merge(var.lab, { instance_type = "z9.4xlarge", gpus = 2 })
  }
  assert {
    condition     = [for node in output.nodes : join(" ", [node.instance_type, node.gpus])] == ["z9.4xlarge 2", "z9.4xlarge 2"]
    error_message = "A GPU is added by one entry of exercises/shared/gpus.json; nothing here names one."
  }
}

run "refuses_a_type_that_is_none" {
  command = plan
  variables {
    lab = merge(var.lab, { instance_type = "a large one" })
  }
  expect_failures = [var.lab]
}

run "refuses_nodes_without_a_gpu" {
  command = plan
  variables {
    lab = merge(var.lab, { gpus = 0 })
  }
  expect_failures = [var.lab]
}

run "refuses_no_node" {
  command = plan
  variables {
    lab = merge(var.lab, { node_count = 0 })
  }
  expect_failures = [var.lab]
}

run "refuses_half_a_node" {
  command = plan
  variables {
    lab = merge(var.lab, { node_count = 1.5 })
  }
  expect_failures = [var.lab]
}

run "refuses_an_address_range" {
  command = plan
  variables {
    lab = merge(var.lab, { ssh_cidr = "0.0.0.0/0" })
  }
  expect_failures = [var.lab]
}

run "refuses_a_private_key" {
  command = plan
  variables {
    lab = merge(var.lab, { public_key = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n" })
  }
  expect_failures = [var.lab]
}

run "refuses_a_life_that_is_too_long" {
  command = plan
  variables {
    lab = merge(var.lab, { ttl_hours = 100 })
  }
  expect_failures = [var.lab]
}

run "refuses_another_project" {
  command = plan
  variables {
    lab = merge(var.lab, { tags = merge(var.lab.tags, { Project = "another" }) })
  }
  expect_failures = [var.lab]
}

run "refuses_a_stack_without_an_owner" {
  command = plan
  variables {
    lab = merge(var.lab, { tags = { for name, value in var.lab.tags : name => value if name != "Owner" } })
  }
  expect_failures = [var.lab]
}

run "refuses_a_stack_without_a_name" {
  command = plan
  variables {
    lab = merge(var.lab, { tags = merge(var.lab.tags, { Stack = "a b" }) })
  }
  expect_failures = [var.lab]
}

run "refuses_an_end_that_is_no_time" {
  command = plan
  variables {
    lab = merge(var.lab, { tags = merge(var.lab.tags, { Expires = "tomorrow" }) })
  }
  expect_failures = [var.lab]
}

run "refuses_more_nodes_than_its_kind_has" {
  command = plan
  variables {
    lab = merge(var.lab, { node_count = 9 })
  }
  expect_failures = [output.nodes]
}
