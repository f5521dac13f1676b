"""Direct calls to the AWS account. Terraform builds; this package checks, searches and removes."""
