resource "terraform_data" "it" {}

output "id" {
  value = terraform_data.it.id
}
