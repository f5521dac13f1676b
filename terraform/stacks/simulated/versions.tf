terraform {
  required_version = ">= 1.4" # terraform_data is built in since this version, so nothing is downloaded
}
