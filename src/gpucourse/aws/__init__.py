"""The AWS account, asked directly: before a lab stands, while it stands, and after. Terraform builds; this looks and proves."""
