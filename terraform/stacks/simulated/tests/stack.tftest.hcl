# The promises of this stack, checked without starting anything: every run only plans.

variables {
  stack        = "m03"
  uid          = "m03-0123abcd"
  nodes_folder = "/folder/with blanks/nodes"
  python       = "/usr/bin/python3"
  driver       = "/course/driver.py"
  user         = "learner"
  public_key   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG9uZSBrZXkgZm9yIHRoZSB0ZXN0cyBvZiB0aGUgc3RhY2s= a comment"
}

run "one_resource_a_node" {
  command = plan

  variables {
    node_count = 3
  }

  assert {
    condition     = length(terraform_data.node) == 3 && terraform_data.node[2].input == "/folder/with blanks/nodes/node2.json"
    error_message = "A node's file is in the nodes' folder, whatever the folder's name."
  }
}

run "another_count_makes_the_size_anew" {
  command = plan

  variables {
    node_count = 3
    scheduler  = "slurm"
  }

  assert {
    condition     = local.count == 4 && terraform_data.size.triggers_replace[1] == local.count
    error_message = "Otherwise, nodes that the lab no longer has would not be removed."
  }
}

run "one_head_then_workers" {
  command = plan

  variables {
    node_count = 64
  }

  assert {
    condition     = [for spec in local.specs : jsondecode(spec).role] == concat(["head"], [for _ in range(63) : "worker"])
    error_message = "The first node is the head, every other one a worker."
  }

  assert {
    condition     = [for spec in local.specs : jsondecode(spec).name] == [for index in range(64) : "node${index}"]
    error_message = "Nodes are called node0, node1, ..."
  }
}

run "destroy_knows_everything_by_itself" {
  command = plan

  assert {
    condition     = join(" ", sort(keys(terraform_data.lab.input))) == "driver folder python spec"
    error_message = "A destroy-time provisioner sees only its own resource, so the lab's resource has all the data for taking it down."
  }

  assert {
    condition     = terraform_data.lab.input.folder == "/folder/with blanks/nodes" && jsondecode(terraform_data.lab.input.spec).count == 0
    error_message = "No node may remain without the lab."
  }
}

run "every_process_is_marked" {
  command = plan

  assert {
    condition     = alltrue([for spec in concat(local.specs, [terraform_data.lab.input.spec]) : jsondecode(spec).uid == "m03-0123abcd"])
    error_message = "Without the mark a left-over process could not be found."
  }
}

run "only_the_given_key_and_user" {
  command = plan

  assert {
    condition     = alltrue([for spec in local.specs : jsondecode(spec).user == "learner" && startswith(jsondecode(spec).public_key, "ssh-ed25519 AAAA")])
    error_message = "A node lets in one user with one key."
  }
}

run "slurm_puts_a_head_before_the_nodes" {
  command = plan

  variables {
    node_count = 3
    scheduler  = "slurm"
  }

  assert {
    condition     = [for spec in local.specs : "${jsondecode(spec).name} ${jsondecode(spec).role} ${jsondecode(spec).gpus}"] == ["node0 head 0", "node1 worker 1", "node2 worker 1", "node3 worker 1"]
    error_message = "The head has no GPU and is not counted."
  }

  assert {
    condition     = length(distinct(values(local.addresses))) == 4 && strcontains(module.slurm.files["slurm.conf"], "SlurmctldHost=node0(10.77.0.10)") && strcontains(module.slurm.files["slurm.conf"], "PartitionName=gpu Nodes=node[1-3] ") && strcontains(module.slurm.files["slurm.conf"], "NodeName=node3 NodeAddr=10.77.0.13 CPUs=4 RealMemory=256000 Gres=gpu:1 ")
    error_message = "Every machine has its own address, and Slurm has it too."
  }

  assert {
    condition     = module.slurm.files["gres.conf"] == "Name=gpu File=/dev/nvidia0\n" && module.slurm.files["mpi.conf"] == ""
    error_message = "Without the device Slurm counts no GPU; without an mpi.conf, 23.11 gives wrong reasons."
  }
}

run "slurm_on_one_host_leaves_ports_and_places_to_whoever_starts_it" {
  command = plan

  variables {
    node_count = 2
    scheduler  = "slurm"
    one_host   = true
  }

  assert {
    condition     = [for spec in local.specs : "${jsondecode(spec).gpus} ${lookup(jsondecode(spec), "addresses", "none")}"] == ["0 none", "1 none", "1 none"]
    error_message = "Its nodes are not machines, but Slurm's data about them is passed on nevertheless."
  }

  assert {
    condition = alltrue([for line in [
      "SlurmctldHost=@HOST@(127.0.0.1)", "SlurmUser=@USER@", "SlurmctldPort=@PORT_slurmctld@", "SlurmdSpoolDir=@FOLDER@/slurm/state/slurmd.%n",
      "SlurmdUser=@USER@", "AuthInfo=socket=@FOLDER@/munge.sock",
      "NodeName=node2 NodeHostname=@HOST@ NodeAddr=127.0.0.1 Port=@PORT_node2@ CPUs=4 RealMemory=256000 Gres=gpu:1 State=UNKNOWN",
    ] : strcontains(jsondecode(local.specs[1]).slurm["slurm.conf"], "\n${line}\n")])
    error_message = "The configuration contains nothing of the system's own Slurm: no folder, no port, no user."
  }

  assert {
    condition     = !can(regex("=/(var|run|etc)", jsondecode(local.specs[0]).slurm["slurm.conf"])) && jsondecode(local.specs[0]).slurm["gres.conf"] == "Name=gpu File=/dev/null\n"
    error_message = "Its daemons write into their own folder."
  }
}

run "a_link_makes_machines_of_nodes" {
  command = plan

  variables {
    link = "1gbit,2ms"
  }

  assert {
    condition     = [for spec in local.specs : jsondecode(spec).link] == ["1gbit,2ms", "1gbit,2ms"] && jsondecode(local.specs[0]).slurm == null && jsondecode(local.specs[1]).gpus == 0
    error_message = "Both have a cable of that speed, and no scheduler."
  }
}

run "refuses_another_scheduler_and_what_is_no_link" {
  command = plan
  variables {
    scheduler = "pbs"
    link      = "fast; reboot"
  }
  expect_failures = [var.scheduler, var.link]
}

run "refuses_no_node" {
  command = plan
  variables {
    node_count = 0
  }
  expect_failures = [var.node_count]
}

run "refuses_half_a_node" {
  command = plan
  variables {
    node_count = 1.5
  }
  expect_failures = [var.node_count]
}

run "refuses_relative_paths" {
  command = plan
  variables {
    nodes_folder = "nodes"
    python       = "python3"
    driver       = "driver.py"
  }
  expect_failures = [var.nodes_folder, var.python, var.driver]
}

run "refuses_names_that_are_none" {
  command = plan
  variables {
    stack = "Module 3"
    uid   = "a=b"
    user  = " "
  }
  expect_failures = [var.stack, var.uid, var.user]
}

run "refuses_a_private_key" {
  command = plan
  variables {
    public_key = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"
  }
  expect_failures = [var.public_key]
}
