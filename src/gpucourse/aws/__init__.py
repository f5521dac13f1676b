"""Direct calls to the AWS account: before a lab exists, while it exists, and after. Terraform builds; this package only
checks."""
