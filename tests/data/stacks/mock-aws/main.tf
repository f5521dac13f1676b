# What the mock account must carry: of each kind of resource that the course's own stacks use, at least one.

terraform {
  required_version = ">= 1.6.1"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.92, < 7.0"
    }
  }
}

variable "region" {
  type    = string
  default = "us-east-2"
}

variable "zone" {
  type    = string
  default = "us-east-2a"
}

variable "instance_type" {
  type    = string
  default = "g4dn.2xlarge"
}

variable "spot" {
  type    = bool
  default = false
}

variable "public_key" {
  type = string
}

provider "aws" {
  region      = var.region
  max_retries = 3
  default_tags {
    tags = {
      Project = "gpucourse"
      Stack   = "mock-aws"
    }
  }
}

data "aws_ssm_parameter" "image" {
  name = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
}

data "aws_ami" "image" {
  owners = ["amazon"]
  filter {
    name   = "image-id"
    values = [nonsensitive(data.aws_ssm_parameter.image.value)]
  }
}

locals {
  snapshot_gb = one([
    for device in data.aws_ami.image.block_device_mappings : tonumber(device.ebs.volume_size)
    if device.device_name == data.aws_ami.image.root_device_name
  ])
}

resource "aws_vpc" "this" {
  cidr_block           = "10.77.0.0/16"
  enable_dns_support   = true
  enable_dns_hostnames = true
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id
}

resource "aws_subnet" "this" {
  vpc_id                  = aws_vpc.this.id
  cidr_block              = "10.77.1.0/24"
  availability_zone       = var.zone
  map_public_ip_on_launch = true
}

resource "aws_route_table" "this" {
  vpc_id = aws_vpc.this.id
  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.this.id
  }
}

resource "aws_route_table_association" "this" {
  subnet_id      = aws_subnet.this.id
  route_table_id = aws_route_table.this.id
}

resource "aws_security_group" "this" {
  name_prefix            = "mock-aws-"
  description            = "SSH from one address, everything inside"
  vpc_id                 = aws_vpc.this.id
  revoke_rules_on_delete = true
}

resource "aws_vpc_security_group_ingress_rule" "ssh" {
  security_group_id = aws_security_group.this.id
  description       = "SSH from the learner"
  cidr_ipv4         = "203.0.113.7/32"
  from_port         = 22
  to_port           = 22
  ip_protocol       = "tcp"
}

resource "aws_vpc_security_group_ingress_rule" "inside" {
  security_group_id            = aws_security_group.this.id
  description                  = "everything between the nodes"
  referenced_security_group_id = aws_security_group.this.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "out" {
  security_group_id = aws_security_group.this.id
  description       = "downloads"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

resource "aws_placement_group" "this" {
  name     = "mock-aws"
  strategy = "cluster"
}

resource "aws_key_pair" "this" {
  key_name_prefix = "mock-aws-"
  public_key      = var.public_key
}

resource "aws_efs_file_system" "this" {
  creation_token  = "mock-aws"
  encrypted       = true
  throughput_mode = "bursting"
}

resource "aws_efs_mount_target" "this" {
  file_system_id  = aws_efs_file_system.this.id
  subnet_id       = aws_subnet.this.id
  security_groups = [aws_security_group.this.id]
}

resource "aws_instance" "node" {
  count                                = 2
  ami                                  = data.aws_ami.image.id
  instance_type                        = var.instance_type
  subnet_id                            = aws_subnet.this.id
  vpc_security_group_ids               = [aws_security_group.this.id]
  key_name                             = aws_key_pair.this.key_name
  placement_group                      = aws_placement_group.this.name
  instance_initiated_shutdown_behavior = var.spot ? null : "terminate"
  user_data                            = "#!/bin/sh\necho node${count.index}\n"
  tags                                 = { Name = "mock-aws-node${count.index}", Node = "node${count.index}" }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
    instance_metadata_tags      = "enabled"
  }

  root_block_device {
    volume_type           = "gp3"
    volume_size           = max(100, local.snapshot_gb)
    encrypted             = true
    delete_on_termination = true
  }

  dynamic "instance_market_options" {
    for_each = var.spot ? [1] : []
    content {
      market_type = "spot"
      spot_options {
        spot_instance_type             = "one-time"
        instance_interruption_behavior = "terminate"
      }
    }
  }

  lifecycle {
    ignore_changes = [ami]
  }

  depends_on = [aws_route_table_association.this, aws_efs_mount_target.this]
}

output "addresses" {
  value = [for node in aws_instance.node : node.public_ip]
}
