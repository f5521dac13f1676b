# The promises of a node's first boot, as far as its text shows. There is no provider, and nothing is created.

variables {
  node = {
    name           = "node1"
    role           = "worker"
    stack          = "w1-0123456789ab"
    gpus           = 1
    python         = "/opt/pytorch/bin/python"
    expires        = "2026-11-20T18:00:00Z"
    ttl_hours      = 1.5
    idle_minutes   = 30
    shared_address = "10.77.1.20"
  }
}

run "fits_into_what_ec2_takes" {
  assert {
    condition     = output.bytes <= 12000
    error_message = "EC2 accepts 16384 bytes, and a stack's own part needs room, too."
  }
}

run "is_unpacked_by_cloud_init" {
  assert {
    condition     = startswith(output.user_data_gzip, "H4sI") && startswith(output.user_data, "#!/bin/bash\n")
    error_message = "gzip in base64, with a shell script inside."
  }
}

run "the_node_knows_its_times" {
  assert {
    condition = alltrue([
      for line in ["EXPIRES=2026-11-20T18:00:00Z", "TTL_SECONDS=5400", "IDLE_SECONDS=1800", "GPUS=1", "NAME=node1", "ROLE=worker", "SHARED_ADDRESS=10.77.1.20"] :
      strcontains(output.user_data, "\n${line}\n")
    ])
    error_message = "The deadline timer and the idle agent read these."
  }
}

run "the_stack_may_add_its_part" {
  variables {
    setup = "step \"mine\"\n"
  }
  assert {
    condition     = strcontains(output.user_data, "put /opt/gpucourse/stack-setup.sh 0755 <<'END_OF_GPUCOURSE_FILE'\nstep \"mine\"\nEND_OF_GPUCOURSE_FILE\n")
    error_message = "The stack's own part becomes stack-setup.sh."
  }
}

run "refuses_what_a_shell_would_take_apart" {
  command = plan
  variables {
    node = {
      name           = "node1"
      role           = "worker"
      stack          = "w1$(reboot)"
      gpus           = 1
      python         = "/opt/pytorch/bin/python"
      expires        = "2026-11-20T18:00:00Z"
      ttl_hours      = 4
      idle_minutes   = 30
      shared_address = ""
    }
  }
  expect_failures = [var.node]
}
