module "part" {
  source = "../parts/part"
}

output "nodes" {
  value = module.part.id
}
