from __future__ import annotations

from gpucourse.provision.commands import terraform_environment


def test_terraform_environment_leaves_out_what_would_steer_it() -> None:
    environ = {"PATH": "/bin", "TF_VAR_a": "1", "TF_LOG": "trace", "TF_TOKEN_x": "t", "TF_CLI_CONFIG_FILE": "/c", "TFX": "1"}
    assert terraform_environment(environ, {"TF_PLUGIN_CACHE_DIR": "/p"}) == {
        "PATH": "/bin", "TF_TOKEN_x": "t", "TF_CLI_CONFIG_FILE": "/c", "TFX": "1",
        "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1", "TF_PLUGIN_CACHE_DIR": "/p", "GOGC": "400",
    }  # fmt: skip
    assert terraform_environment({"GOGC": "50"})["GOGC"] == "50"  # whoever has little memory says so
