# What this stack adds to ../../modules/lab, which has its own tests. The provider is mocked: nothing is sent to AWS.

mock_provider "aws" {
  mock_data "aws_ssm_parameters_by_path" {
    defaults = {
      names  = ["/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.12-ubuntu-24.04/latest/ami-id", "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"]
      values = ["ami-00000000000000212", "ami-00000000000002404"]
    }
  }
}

variables {
  lab = {
    instance_type = "g4dn.xlarge"
    gpus          = 1
    zone          = "us-east-2a"
    ssh_cidr      = "203.0.113.7/32"
    public_key    = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG9uZSBrZXkgZm9yIHRoZSB0ZXN0cyBvZiB0aGUgc3RhY2s= a comment\n"
    ttl_hours     = 4
    min_ttl_hours = 0.25
    max_ttl_hours = 72
    tags = {
      Project = "gpucourse"
      Course  = "w1"
      Module  = "4"
      Owner   = "ada"
      Stack   = "w1-0123456789ab"
      Expires = "2026-11-20T18:00:00Z"
    }
  }
}

run "one_node_with_the_gpu_to_measure" {
  assert {
    condition     = [for node in output.nodes : join(" ", [node.name, node.role, node.instance_type, node.gpus, node.python])] == ["node0 head g4dn.xlarge 1 /opt/pytorch/bin/python"]
    error_message = "One node, which is the head."
  }
}

run "any_gpu_of_the_course" {
  command = plan
  variables {
    lab = merge(var.lab, { instance_type = "p5.4xlarge", node_count = 4 })
  }
  assert {
    condition     = [for node in output.nodes : node.gpus] == [1, 1, 1, 1]
    error_message = "An H100 is measured in the same stack."
  }
}

run "inference_is_part_of_the_first_boot" {
  command = plan
  assert {
    condition     = strcontains(module.lab.scripts["node0"], "vllm")
    error_message = "The module's inference exercises need an engine."
  }
}
