# The promises of the shared storage.

mock_provider "aws" {}

variables {
  stack             = "w1-0123456789ab"
  subnet_id         = "subnet-0123456789abcdef0"
  security_group_id = "sg-0123456789abcdef0"
}

run "files_are_encrypted_at_rest" {
  assert {
    condition     = aws_efs_file_system.shared.encrypted
    error_message = "What learners store is encrypted."
  }
}

run "reading_and_writing_is_not_billed_by_the_gigabyte" {
  assert {
    condition     = aws_efs_file_system.shared.throughput_mode == "bursting"
    error_message = "Elastic and provisioned throughput are billed on top of what is stored."
  }
}

run "mounted_within_the_zone_under_the_nodes_rules" {
  assert {
    condition = (
      aws_efs_mount_target.shared.file_system_id == aws_efs_file_system.shared.id
      && aws_efs_mount_target.shared.subnet_id == "subnet-0123456789abcdef0"
      && aws_efs_mount_target.shared.security_groups == toset(["sg-0123456789abcdef0"])
    )
    error_message = "The mount target is in the nodes' subnet and group."
  }

  assert {
    condition     = output.address == aws_efs_mount_target.shared.ip_address
    error_message = "Nodes mount from the address: the name does not resolve in the first minutes."
  }
}
