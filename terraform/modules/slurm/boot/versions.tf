terraform {
  required_version = ">= 1.5, != 1.6.0" # no provider: what a node does at its first boot can be rendered and tried anywhere
}
