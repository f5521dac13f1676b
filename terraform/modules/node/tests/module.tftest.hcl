# The promises of a node, checked by an apply against a mocked provider. Nothing is sent to AWS.

mock_provider "aws" {
  mock_data "aws_ssm_parameters_by_path" {
    defaults = {
      names  = ["/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.11-ubuntu-24.04/latest/ami-id", "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"]
      values = ["ami-00000000000000211", "ami-00000000000002404"]
    }
  }
  mock_data "aws_ami" {
    defaults = {
      root_device_name = "/dev/sda1"
      block_device_mappings = [
        { device_name = "/dev/sda1", no_device = "", virtual_name = "", ebs = { volume_size = "105" } },
        { device_name = "/dev/sdb", no_device = "", virtual_name = "ephemeral0", ebs = {} },
      ]
    }
  }
}

variables {
  tags = {
    Project = "gpucourse"
    Course  = "w1"
    Module  = "3"
    Owner   = "ada"
    Stack   = "w1-0123456789ab"
    Expires = "2026-11-20T18:00:00Z"
  }
  node_count        = 2
  instance_type     = "g4dn.2xlarge"
  gpus              = 1
  subnet_id         = "subnet-0123456789abcdef0"
  security_group_id = "sg-0123456789abcdef0"
  key_name          = "key"
  ttl_hours         = 4
}

run "powering_off_ends_the_bill" {
  command = plan
  assert {
    condition     = alltrue([for node in aws_instance.node : node.instance_initiated_shutdown_behavior == "terminate"])
    error_message = "The deadline and the idle agent power the node off: that must terminate it, not stop it."
  }
}

run "metadata_only_with_a_token" {
  command = plan
  assert {
    condition     = alltrue([for node in aws_instance.node : node.metadata_options[0].http_tokens == "required" && node.metadata_options[0].http_put_response_hop_limit == 1])
    error_message = "IMDSv2 is required, and containers do not reach it."
  }
}

run "disks_are_encrypted_and_go_with_the_node" {
  command = plan
  assert {
    condition = alltrue([
      for node in aws_instance.node :
      node.root_block_device[0].encrypted && node.root_block_device[0].delete_on_termination && node.root_block_device[0].volume_type == "gp3"
    ])
    error_message = "An encrypted gp3 disk that does not outlive its node."
  }
}

run "a_disk_with_a_large_snapshot_is_fast" {
  command = plan
  assert {
    condition     = alltrue([for node in aws_instance.node : node.root_block_device[0].throughput == 500])
    error_message = "At 125 MB/s the first import of torch and the installation of vLLM would take minutes more."
  }
}

run "the_disk_has_room_beside_its_snapshot" {
  command = plan
  assert {
    condition     = alltrue([for node in aws_instance.node : node.root_block_device[0].volume_size == 150])
    error_message = "EC2 refuses a disk that is smaller than the image's snapshot, and a full disk has no room for vLLM."
  }
}

run "disks_carry_every_tag" {
  command = plan
  assert {
    condition = alltrue([
      for node in aws_instance.node :
      alltrue([for name, value in var.tags : node.volume_tags[name] == value]) && node.volume_tags["Node"] == node.tags["Node"]
    ])
    error_message = "No search would find a disk without the tags."
  }
}

run "nodes_are_named_after_their_stack" {
  command = plan
  assert {
    condition     = [for node in aws_instance.node : node.tags["Name"]] == ["w1-0123456789ab-node0", "w1-0123456789ab-node1"]
    error_message = "Name = <stack>-node0."
  }
}

run "the_first_image_that_is_there_is_taken" {
  command = plan
  assert {
    condition     = local.ami == "ami-00000000000000211" && alltrue([for node in aws_instance.node : node.ami == "ami-00000000000000211"])
    error_message = "PyTorch 2.12 is absent here, so the next one in the list is used."
  }
}

run "plain_ubuntu_where_it_is_asked_for" {
  variables {
    image = "ubuntu"
  }
  assert {
    condition     = local.ami == "ami-00000000000002404" && output.nodes[0].python == "/usr/bin/python3"
    error_message = "The head of a cluster boots plain Ubuntu."
  }
}

run "on_demand_unless_told_otherwise" {
  command = plan
  assert {
    condition     = alltrue([for node in aws_instance.node : length(node.instance_market_options) == 0]) && keys(aws_instance.node) == ["node0-on-demand", "node1-on-demand"]
    error_message = "Spot is a choice."
  }
}

run "spot_is_asked_for_once_and_the_switch_makes_other_nodes" {
  variables {
    spot = true
  }
  assert {
    condition = alltrue([
      for node in aws_instance.node :
      node.instance_market_options[0].market_type == "spot"
      && node.instance_market_options[0].spot_options[0].spot_instance_type == "one-time"
      && node.instance_market_options[0].spot_options[0].instance_interruption_behavior == "terminate"
    ])
    error_message = "A persistent request would start instances that nobody watches."
  }
  assert {
    condition     = alltrue([for node in aws_instance.node : node.instance_initiated_shutdown_behavior != "terminate"])
    error_message = "The provider would ask EC2 to change what powering off does, which EC2 refuses for a running spot instance."
  }
  assert {
    condition     = keys(aws_instance.node) == ["node0-spot", "node1-spot"]
    error_message = "The market is part of the key, so a change of the market replaces the node."
  }
}

run "a_node_to_start_from" {
  assert {
    condition     = length(aws_instance.node) == 2
    error_message = "Two nodes."
  }
}

run "another_type_makes_other_nodes" {
  variables {
    instance_type = "g6.2xlarge"
  }
  assert {
    condition     = length(setintersection([for node in aws_instance.node : node.id], values(run.a_node_to_start_from.ids))) == 0
    error_message = "A change in place would stop the instance, which is impossible for a one-time spot instance."
  }
}

run "a_placement_group_makes_other_nodes" {
  variables {
    instance_type   = "g6.2xlarge"
    placement_group = "close"
  }
  assert {
    condition     = length(setintersection([for node in aws_instance.node : node.id], values(run.another_type_makes_other_nodes.ids))) == 0
    error_message = "An instance cannot be moved, so it is replaced."
  }
}

run "without_the_placement_group_nodes_leave_it" {
  variables {
    instance_type = "g6.2xlarge"
  }
  assert {
    condition     = length(setintersection([for node in aws_instance.node : node.id], values(run.a_placement_group_makes_other_nodes.ids))) == 0
    error_message = "Nodes that stayed in the group would keep it from being deleted."
  }
}

run "a_lab_at_work_is_not_rebuilt" {
  variables {
    instance_type = "g6.2xlarge"
    ttl_hours     = 8
    setup         = "step more\n"
  }
  override_data {
    target = data.aws_ssm_parameters_by_path.images
    values = {
      names  = ["/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.12-ubuntu-24.04/latest/ami-id"]
      values = ["ami-00000000000000212"]
    }
  }
  assert {
    condition     = [for node in aws_instance.node : node.id] == values(run.without_the_placement_group_nodes_leave_it.ids)
    error_message = "Existing nodes, on which somebody may work, are not changed."
  }
  assert {
    condition = (
      local.ami == "ami-00000000000000212" && alltrue([for node in aws_instance.node : node.ami == "ami-00000000000000211"])
      && output.scripts["node0"] != run.without_the_placement_group_nodes_leave_it.scripts["node0"]
      && aws_instance.node["node0-on-demand"].user_data_base64 == base64gzip(run.without_the_placement_group_nodes_leave_it.scripts["node0"])
    )
    error_message = "A newer image and another script apply only to nodes that are created later."
  }
}

run "t3_has_its_whole_processor_from_the_start" {
  command = plan
  variables {
    instance_type = "t3.medium"
    image         = "ubuntu"
  }
  assert {
    condition     = alltrue([for node in aws_instance.node : node.credit_specification[0].cpu_credits == "unlimited"])
    error_message = "T3 starts without credits: at its baseline the first boot takes five times as long, while GPU nodes cost money."
  }
}

run "one_shape_of_node" {
  variables {
    first = 1
  }
  assert {
    condition = alltrue([
      for index, node in output.nodes :
      keys(node) == ["address", "gpus", "host_key", "instance_type", "mode", "name", "port", "private_address", "python", "role", "user"]
      && node.name == "node${index + 1}" && node.role == "worker" && node.port == 22 && node.user == "ubuntu" && node.mode == "aws"
      && node.gpus == 1 && node.instance_type == "g4dn.2xlarge" && node.python == "/opt/pytorch/bin/python" && node.host_key == ""
    ])
    error_message = "The course reads exactly these fields."
  }
}

run "many_nodes_stay_in_order" {
  variables {
    node_count = 12
  }
  assert {
    condition     = [for node in output.nodes : node.name] == [for index in range(12) : "node${index}"] && [for node in output.nodes : node.role][0] == "head"
    error_message = "node10 comes after node9, and node0 is the head."
  }
}

run "hands_over_the_number_of_gpus" {
  command = plan
  variables {
    instance_type = "g4dn.12xlarge"
    gpus          = 4
  }
  assert {
    condition     = output.nodes[0].gpus == 4 && strcontains(output.scripts["node0"], "\nGPUS=4\n")
    error_message = "The inventory and the first boot, which counts the GPUs, must have the given number."
  }
}

run "refuses_to_end_nodes_that_rest_for_a_moment" {
  command = plan
  variables {
    idle_minutes = 1
  }
  expect_failures = [var.idle_minutes]
}

run "says_which_images_it_looked_for" {
  command = plan
  override_data {
    target = data.aws_ssm_parameters_by_path.images
    values = { names = [], values = [] }
  }
  expect_failures = [data.aws_ami.image]
}
