output "user_data" {
  description = "The script that the node runs."
  value       = local.user_data
}

output "user_data_gzip" {
  description = "The same script, gzipped and base64-encoded for transfer; cloud-init unpacks it."
  value       = base64gzip(local.user_data)
}

output "bytes" {
  description = "Number of bytes used, out of the 16384 that EC2 accepts."
  value       = floor(length(base64gzip(local.user_data)) * 3 / 4)
}
