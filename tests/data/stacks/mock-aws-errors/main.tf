# One instance for each error of the API, told apart by its user data; and a resource for each error of another action.

terraform {
  required_version = ">= 1.6.1"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.92, < 7.0"
    }
  }
}

variable "codes" {
  type = set(string)
}

variable "public_key" {
  type = string
}

provider "aws" {
  region      = "us-east-2"
  max_retries = 3
}

data "aws_ssm_parameter" "image" {
  name = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
}

resource "aws_instance" "node" {
  for_each          = var.codes
  ami               = nonsensitive(data.aws_ssm_parameter.image.value)
  instance_type     = "g4dn.2xlarge"
  availability_zone = "us-east-2a"
  user_data         = "# ${each.key}"
}

resource "aws_vpc" "one_too_many" {
  cidr_block = "10.78.0.0/16"
}

resource "aws_key_pair" "taken" {
  key_name   = "taken"
  public_key = var.public_key
}

resource "aws_efs_file_system" "forbidden" {
  creation_token = "forbidden"
}

data "aws_vpc" "default" {
  default = true
}

resource "aws_subnet" "kept" {
  vpc_id     = data.aws_vpc.default.id
  cidr_block = "172.31.200.0/24"
  timeouts {
    delete = "5s"
  }
}
