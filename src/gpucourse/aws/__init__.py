"""Direct calls to the AWS account. Terraform builds the labs; this package checks the account, and finds and removes
resources."""
