module "piece" {
  source = "../piece"
}

output "id" {
  value = module.piece.id
}
