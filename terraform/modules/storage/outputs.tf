# The address, not the name: the name resolves only about 90 seconds after the mount target exists.
output "address" {
  description = "IPv4 address from which the nodes mount. Resources that use this output are destroyed before the mount target."
  value       = aws_efs_mount_target.shared.ip_address
}

output "file_system_id" {
  description = "The file system."
  value       = aws_efs_file_system.shared.id
}
