# The scheduler's part of a node's first boot. It has no provider, so that it can be rendered and tried anywhere. Only the machines
# know the values between @ signs: they fill them in.

module "slurm" {
  source = "../../slurm"

  head       = { name = "node0", address = "@HEAD@" }
  names      = "@NAMES@"
  workers    = ["@WORKERS@"]
  devices    = "/dev/nvidia@DEVICES@"
  patience_s = 60
}

output "setup" {
  description = "Bash for setup.sh, the same on every node; it is also the program of the service that follows the cluster."
  value = join("", [
    "# shellcheck shell=bash disable=SC2153,SC2154\n",
    "slurm_file() {\ncase $1 in\n",
    join("", [for name, text in module.slurm.files : "${name}) cat <<'END_OF_SLURM_FILE'\n${text}END_OF_SLURM_FILE\n;;\n"]),
    "esac\n}\n",
    file("${path.module}/slurm.sh"),
  ])
}
