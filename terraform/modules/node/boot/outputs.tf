output "user_data" {
  description = "The script as the node runs it."
  value       = local.user_data
}

output "user_data_gzip" {
  description = "The same script, gzipped and base64-encoded for transfer; cloud-init unpacks it."
  value       = base64gzip(local.user_data)
}

output "bytes" {
  description = "How many of the 16384 bytes that EC2 accepts are used."
  value       = floor(length(base64gzip(local.user_data)) * 3 / 4)
}
