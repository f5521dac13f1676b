"""Direct calls to the AWS account, before, during and after the life of a lab. Terraform builds; this package checks, searches
and removes."""
