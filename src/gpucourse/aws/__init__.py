"""The AWS account, asked directly: before a lab exists, while it exists, and after. Terraform builds; this looks and proves."""
