# What this stack promises. The provider is mocked: nothing is asked of AWS. What the network, the nodes and the storage promise by
# themselves is tested beside them, in ../../modules.

mock_provider "aws" {
  mock_data "aws_ssm_parameters_by_path" {
    defaults = {
      names  = ["/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.12-ubuntu-24.04/latest/ami-id", "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"]
      values = ["ami-00000000000000212", "ami-00000000000002404"]
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
    Module  = "2"
    Owner   = "ada"
    Stack   = "w1-0123456789ab"
    Expires = "2026-11-20T18:00:00Z"
  }
}

run "a_head_and_three_gpu_nodes" {
  assert {
    condition     = [for node in output.nodes : join(" ", [node.name, node.role, node.instance_type, node.gpus, node.python])] == concat(["node0 head t3.medium 0 /usr/bin/python3"], [for index in [1, 2, 3] : "node${index} worker g4dn.xlarge 1 /opt/pytorch/bin/python"])
    error_message = "A small head, then the GPU nodes."
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

run "head_and_gpu_nodes_mount_the_shared_storage" {
  assert {
    condition = module.storage.address != "" && alltrue([
      for script in merge(module.head.scripts, module.workers.scripts) : strcontains(script, "\nSHARED_ADDRESS=${module.storage.address}\n")
    ])
    error_message = "Jobs find their files on every node."
  }
}

run "the_set_up_of_slurm_is_part_of_every_first_boot" {
  command = plan
  variables {
    node_count = 2
  }
  assert {
    condition = length(merge(module.head.scripts, module.workers.scripts)) == 3 && alltrue([
      for script in merge(module.head.scripts, module.workers.scripts) : strcontains(script, module.scheduler.setup)
    ])
    error_message = "setup.sh runs it on the head and on every GPU node."
  }
}

run "spot_only_where_it_is_asked_for" {
  command = plan
  variables {
    spot = true
  }
  assert {
    condition     = module.workers.market == "spot" && module.head.market == "on-demand"
    error_message = "Losing the head loses the cluster: it is on demand, whatever the GPU nodes are."
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
    node_count    = 9
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
