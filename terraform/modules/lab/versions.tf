terraform {
  required_version = ">= 1.5, != 1.6.0" # 1.6.0 refuses the key that the provider is signed with

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.92, < 7.0"
    }
  }
}
