locals {
  # The instance types that the course offers, and their larger brothers, by their number of GPUs. What is not here is refused, since
  # a wrong count would only show when a run hangs. p3 (V100) is not here: AWS has retired it.
  types_by_gpus = {
    0 = ["t3.small", "t3.medium", "t3.large"]
    1 = [
      "g4dn.xlarge", "g4dn.2xlarge", "g4dn.4xlarge", "g4dn.8xlarge", "g4dn.16xlarge",
      "g5.xlarge", "g5.2xlarge", "g5.4xlarge", "g5.8xlarge", "g5.16xlarge",
      "g6.xlarge", "g6.2xlarge", "g6.4xlarge", "g6.8xlarge", "g6.16xlarge",
      "g6e.xlarge", "g6e.2xlarge", "g6e.4xlarge", "g6e.8xlarge", "g6e.16xlarge",
      "gr6.4xlarge", "gr6.8xlarge", "p5.4xlarge",
    ]
    4 = ["g4dn.12xlarge", "g5.12xlarge", "g5.24xlarge", "g6.12xlarge", "g6.24xlarge", "g6e.12xlarge", "g6e.24xlarge"]
    8 = ["g4dn.metal", "g5.48xlarge", "g6.48xlarge", "g6e.48xlarge", "p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge"]
  }

  gpu_counts = merge([for count, types in local.types_by_gpus : { for type in types : type => tonumber(count) }]...)
  gpus       = lookup(local.gpu_counts, var.instance_type, null)
}
