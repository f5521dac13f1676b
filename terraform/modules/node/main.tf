locals {
  stack  = var.tags["Stack"]
  market = var.spot ? "spot" : "on-demand"
  names  = [for index in range(var.first, var.first + var.node_count) : "node${index}"]

  # The market is part of the key, because removing instance_market_options from an instance shows as no change: a spot node would
  # stay a spot node. Under another key it is another node.
  keys  = { for name in local.names : name => "${name}-${local.market}" }
  nodes = { for name in local.names : local.keys[name] => { name = name, role = name == "node0" ? "head" : "worker" } }
}

module "boot" {
  source   = "./boot"
  for_each = local.nodes

  node = {
    name           = each.value.name
    role           = each.value.role
    stack          = local.stack
    gpus           = var.gpus
    python         = local.python
    expires        = var.tags["Expires"]
    ttl_hours      = var.ttl_hours
    idle_minutes   = var.idle_minutes
    shared_address = var.shared_address
  }
  setup     = var.setup
  inference = var.inference
}

# A change of these values replaces the nodes. The provider would stop an instance to change its type, which is impossible for a
# one-time spot instance, and would leave an instance in a placement group that is removed.
resource "terraform_data" "hardware" {
  input = { instance_type = var.instance_type, placement_group = var.placement_group }
}

resource "aws_instance" "node" {
  for_each = local.nodes

  ami                    = local.ami
  instance_type          = var.instance_type
  subnet_id              = var.subnet_id
  vpc_security_group_ids = [var.security_group_id]
  key_name               = var.key_name
  placement_group        = var.placement_group

  # A node ends itself, and its bill, by powering off. EC2 refuses to change this setting for a spot instance once it has started;
  # for a one-time spot instance it is the default, which `deploy` verifies.
  instance_initiated_shutdown_behavior = var.spot ? null : "terminate"

  user_data_base64            = module.boot[each.key].user_data_gzip
  user_data_replace_on_change = true # the script runs only once, so a changed script needs a new node

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  # The first reading of a large snapshot is slow: gp3 has 125 MB/s unless more is paid for, and torch and vLLM are several GB.
  root_block_device {
    volume_type           = "gp3"
    volume_size           = max(var.root_gb, local.snapshot_gb + var.free_gb)
    throughput            = local.snapshot_gb >= 50 ? 500 : null
    encrypted             = true
    delete_on_termination = true
  }

  # T3 starts without credits: with `standard` the first boot would get a fifth of each processor, while GPU nodes wait for it and
  # cost money. Use above the baseline is billed, at most a few cents per hour, and the quote includes it.
  dynamic "credit_specification" {
    for_each = startswith(var.instance_type, "t3.") ? ["unlimited"] : []
    content {
      cpu_credits = credit_specification.value
    }
  }

  # One-time: a persistent request would outlive `destroy` and start instances that nobody watches.
  dynamic "instance_market_options" {
    for_each = var.spot ? ["spot"] : []
    content {
      market_type = instance_market_options.value
      spot_options {
        spot_instance_type             = "one-time"
        instance_interruption_behavior = "terminate"
      }
    }
  }

  tags        = { Name = "${local.stack}-${each.value.name}", Node = each.value.name }
  volume_tags = merge(var.tags, { Name = "${local.stack}-${each.value.name}", Node = each.value.name })

  timeouts {
    create = "10m"
    delete = "10m"
  }

  lifecycle {
    # Neither a new release of the image nor another time to live may rebuild a lab while somebody works in it. A node that is
    # created later gets the current values.
    ignore_changes       = [ami, user_data_base64]
    replace_triggered_by = [terraform_data.hardware]

    precondition {
      condition     = module.boot[each.key].bytes <= 16384
      error_message = "The node's first script has ${module.boot[each.key].bytes} bytes; EC2 accepts at most 16384."
    }
  }
}
