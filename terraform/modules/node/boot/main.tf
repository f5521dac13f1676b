locals {
  facts = {
    NAME           = var.node.name
    ROLE           = var.node.role
    STACK          = var.node.stack
    GPUS           = var.node.gpus
    PYTHON         = var.node.python
    EXPIRES        = var.node.expires
    TTL_SECONDS    = floor(var.node.ttl_hours * 3600)
    IDLE_SECONDS   = floor(var.node.idle_minutes * 60)
    SHARED_ADDRESS = var.node.shared_address
    SHARED_FOLDER  = "/shared"
  }

  programs = {
    "/opt/gpucourse/setup.sh"       = file("${path.module}/../files/setup.sh")
    "/opt/gpucourse/stack-setup.sh" = local.setup == "" ? "# This stack adds nothing.\n" : local.setup
    "/opt/gpucourse/ready.py"       = file("${path.module}/../files/ready.py")
    "/opt/gpucourse/deadline.sh"    = file("${path.module}/../files/deadline.sh")
    "/opt/gpucourse/end-node.sh"    = file("${path.module}/../files/end-node.sh")
    "/opt/gpucourse/idle_agent.py"  = file("${path.module}/../files/idle_agent.py")
  }

  setup    = join("\n", compact([var.inference ? file("${path.module}/../files/inference.sh") : "", var.setup]))
  packages = var.inference ? ["transformers.txt", "vllm.txt"] : []

  settings = merge({
    "/etc/gpucourse/node.env"                              = join("", [for name, value in local.facts : "${name}=${value}\n"])
    "/etc/systemd/system/gpucourse-deadline.service"       = file("${path.module}/../files/gpucourse-deadline.service")
    "/etc/systemd/system/gpucourse-deadline.timer"         = file("${path.module}/../files/gpucourse-deadline.timer")
    "/etc/systemd/system/gpucourse-idle.service"           = file("${path.module}/../files/gpucourse-idle.service")
    "/etc/systemd/system/gpucourse-idle.timer"             = file("${path.module}/../files/gpucourse-idle.timer")
    "/etc/systemd/system/poweroff.target.d/gpucourse.conf" = file("${path.module}/../files/poweroff.conf")
    "/etc/ssh/sshd_config.d/60-gpucourse.conf"             = file("${path.module}/../files/sshd.conf")
    "/etc/systemd/logind.conf.d/60-gpucourse.conf"         = file("${path.module}/../files/logind.conf")
  }, { for name in local.packages : "/opt/gpucourse/${name}" => file("${path.module}/../packages/${name}") })

  user_data = templatefile("${path.module}/../files/user_data.sh.tftpl", {
    programs = local.programs
    settings = local.settings
  })
}
