resource "aws_efs_file_system" "shared" {
  encrypted        = true
  performance_mode = "generalPurpose"
  throughput_mode  = "bursting" # elastic throughput is billed by the gigabyte

  tags = { Name = "gpucourse-${var.stack}" }
}

resource "aws_efs_mount_target" "shared" {
  file_system_id  = aws_efs_file_system.shared.id
  subnet_id       = var.subnet_id
  security_groups = [var.security_group_id]
}
