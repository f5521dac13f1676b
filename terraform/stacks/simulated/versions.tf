terraform {
  required_version = ">= 1.4" # terraform_data is built in from here on; nothing is downloaded
}
