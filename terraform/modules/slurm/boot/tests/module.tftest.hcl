# The promises of Slurm's set-up, as far as its text shows. There is no provider, and nothing is created.

run "brings_every_file_of_etc_slurm" {
  assert {
    condition     = alltrue([for name in keys(module.slurm.files) : strcontains(output.setup, "\n${name}) cat <<'END_OF_SLURM_FILE'\n")])
    error_message = "The files come from the common template."
  }
}

run "leaves_to_the_machines_what_only_they_know" {
  assert {
    condition = alltrue([
      for line in ["SlurmctldHost=node0(@HEAD@)", "@WORKERS@", "PartitionName=gpu Nodes=@NAMES@ Default=YES MaxTime=INFINITE State=UP", "Name=gpu File=/dev/nvidia@DEVICES@"] :
      strcontains(output.setup, "\n${line}\n")
    ])
    error_message = "Addresses, nodes and devices are filled in on the nodes."
  }
}

run "is_the_same_on_every_node_and_holds_no_key" {
  assert {
    condition     = length(output.setup) < 16384 && !can(regex("[A-Za-z0-9+/]{200}", output.setup))
    error_message = "The head creates the key; it is never in user data or in the state."
  }
}
