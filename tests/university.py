"""A cluster with a real Slurm, as universities run them: nobody except the administrator is root, and everything is reached
through a login node.

Its six nodes are in separate namespaces: `adm` (slurmctld, and slurmdbd with MariaDB: associations, limits and QoS are
enforced), `login1` (an sshd with a banner, a MOTD and noisy start files), `cpu1`, `cpu2`, `gpu1` (one a100) and `gpu2` (four
v100). There is no ssh to the other nodes. Only compute nodes have torch, after `module load pytorch/2.13`. All nodes share the
homes and /project; each node has its own /scratch and /tmp. The GPUs are copies of /dev/null, so that nothing here says
anything about CUDA.

The partitions: `cpu` (the default, at most 5 minutes), `gpu-short` (at most 30 minutes, for the account abc123, only for jobs
that request a GPU), and `high` (for the account prof), whose jobs preempt all others. A job without an account is refused. The
users: `stud` (bash; accounts dead and abc123; dead may not submit), `dora` (tcsh; abc123), `prof` (bash; prof). The QoS
`course` ends jobs after 20 minutes.

By hand, as root: `python -m tests.university [--no-accounting]`; it says what to type, and ends with Ctrl-C.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gpucourse.remote.keys import ensure_client_key
from tests.parts import lack, need
from tests.ports import take_port
from tests.waiting import until

NODES = {"adm": 10, "login1": 11, "cpu1": 21, "cpu2": 22, "gpu1": 31, "gpu2": 32}
"""The nodes, each with the last number of its address."""
COMPUTE_NODES = ("cpu1", "cpu2", "gpu1", "gpu2")
USERS = {"stud": (2001, "/bin/bash"), "dora": (2002, "/bin/tcsh"), "prof": (2003, "/bin/bash")}
PASSWORD = "learn gpus"  # the password of all users; only the login with two factors asks for it
_HASH = "$6$course$oizOhOWq6C6xSXNOw9hh9/FzIo1LDYIHwHLHEtT6YEx38.Xf8Dh676vYA1KYUmbVmA3rAdLuxij9zFmIBIU5u."
COURSE = "GPUCOURSE_WORKSPACE=~/work PYTHONPATH=/opt/checkout/src /opt/course/pytorch/bin/python -m gpucourse"
"""The command of a person who has installed the course on the login node."""
_CHECKOUT = Path(__file__).resolve().parents[1]
_DATA = Path(__file__).parent / "data" / "university"
_PARTS = ("slurmctld", "slurmd", "sbatch", "munged", "sshd", "ip", "nsenter")
_ACCOUNTING_PARTS = ("slurmdbd", "mariadbd")
_BANNER = "*** UNI-HPC: authorised use only. Jobs on this login node are killed. ***\n"
_RC = "echo 'Welcome to UNI-HPC, {user}: {{\"quota\": 97}}'\n"
_MODULES = """\
module() {
  case "${1:-}" in
  avail) printf '%s\\n' ---- /opt/modules ---- pytorch/2.13 >&2 ;;
  list) echo "Currently Loaded Modulefiles: ${LOADEDMODULES:-none}" >&2 ;;
  purge) ;;
  load | add)
    case $2 in pytorch | pytorch/2.13) ;; *) echo "ERROR: Unable to locate a modulefile for '$2'" >&2; return 1 ;; esac
    PATH=/opt/sw/pytorch/bin:$PATH LOADEDMODULES=pytorch/2.13
    export PATH LOADEDMODULES
    ;;
  esac
}
[ -z "${BASH_VERSION:-}" ] || export -f module
"""
_SSHD = """\
HostKey /etc/ssh/host_key
PubkeyAuthentication yes
PasswordAuthentication no
AllowUsers stud dora prof
UsePAM yes
PrintMotd no
Banner /etc/ssh/banner
Subsystem sftp internal-sftp
"""
_METHODS = {
    "sshd_config": "KbdInteractiveAuthentication no\n",
    "sshd_config_2fa": "KbdInteractiveAuthentication yes\nAuthenticationMethods publickey,keyboard-interactive\n",
}
_PAM = """\
auth required pam_unix.so
account required pam_unix.so
session required pam_unix.so
session optional pam_motd.so motd=/etc/motd noupdate
"""


@dataclass(frozen=True)
class University:
    """A cluster that is up. `port`: the port for the login by key. `two_factor_port`: the port for the login by key and
    password."""

    folder: Path
    port: int
    two_factor_port: int
    processes: dict[str, int]

    @property
    def key(self) -> Path:
        """Return the private key that every user accepts."""
        return self.folder / "key"

    def introduce(self, home: Path) -> None:
        """Write the SSH configuration of a person who logs in as `ssh uni` (stud), `ssh uni-dora`, or `ssh uni-2fa`."""
        folder = home / ".ssh"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy(self.key, folder / "id_uni")
        (folder / "id_uni").chmod(0o600)
        hosts = {
            "uni": ("stud", self.port),
            "uni-dora": ("dora", self.port),
            "uni-2fa": ("stud", self.two_factor_port),
        }
        host_key = " ".join((self.folder / "etc/ssh/host_key.pub").read_text().split()[:2])
        host_lines = "".join(f"[127.0.0.1]:{port} {host_key}\n" for port in (self.port, self.two_factor_port))
        (folder / "known_hosts").write_text(host_lines)
        lines = [f"Host {name}\n  HostName 127.0.0.1\n  Port {port}\n  User {user}\n" for name, (user, port) in hosts.items()]
        files = f'Host *\n  IdentitiesOnly yes\n  IdentityFile "{folder}/id_uni"\n  UserKnownHostsFile "{folder}/known_hosts"\n'
        (folder / "config").write_text("".join(lines) + files)

    def inside(self, node: str, command: str, *, user: str = "root", code: int | None = 0) -> str:
        """Return the output of a bash command on a node, run directly and not over ssh, as an administrator would."""
        change = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        result = subprocess.run(
            [*self.enter(node), *change, "bash", "-lc", f"cd; {command}"],
            capture_output=True, text=True, env=_clean_environment(user), check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert code is None or result.returncode == code, (
            f"{node}: {command}: {result.returncode}\n{result.stdout}{result.stderr}"
        )
        return result.stdout

    def enter(self, node: str) -> list[str]:
        """Return the beginning of a command on a node."""
        return ["nsenter", "-t", str(self.processes[node]), "-m", "-n", "-u", "-i", "-p"]

    def files(self, node: str = "login1", user: str = "stud") -> list[str]:
        """Return the files and folders that a user has on a node, except those that were there at the start."""
        places = f"/home/{user} /project/{user} /scratch /tmp /dev/shm /var/tmp"
        start = "! -name .bashrc ! -name .cshrc ! -name .profile ! -path '*/.ssh*'"
        return self.inside(node, f"find {places} -mindepth 1 -user {user} {start} | sort").splitlines()

    def processes_of(self, user: str = "stud", node: str = "login1") -> list[str]:
        """Return the command lines of a user's processes on a node."""
        lines = self.inside(node, f"ps -o stat=,args= -u {user}", code=None).splitlines()
        return [line.split(maxsplit=1)[1] for line in lines if not line.startswith("Z")]

    def check_nothing_is_left(self, user: str = "stud") -> None:
        """Check that a user has no job, no process and no file on any node, except the files from the start."""
        until(lambda: not self.queue(), "the end of all jobs")  # one that was cancelled is completing for a moment
        nodes = ("login1", *COMPUTE_NODES)
        files = {node: names for node in nodes if (names := self.files(node, user))}
        assert not files, files
        until(lambda: not any(self.processes_of(user, node) for node in nodes), f"the end of all processes of {user}")

    def queue(self) -> list[str]:
        """Return all waiting and running jobs of all users: `ID USER STATE NAME`."""
        return self.inside("adm", "squeue -h -o '%i %u %T %j'").splitlines()


@contextmanager
def run_university(folder: Path, *, accounting: bool = True) -> Iterator[University]:
    """Run a cluster in an empty folder that every user can read. If a part is missing, skip the test with the reason."""
    if sys.platform != "linux" or os.geteuid() != 0:
        lack("root on Linux, for namespaces with several users,")
    for part in _PARTS:
        need(part)
    for part in _ACCOUNTING_PARTS if accounting else ():
        need(part)
    umask = os.umask(0o022)  # all users of the cluster read its files
    try:
        _write_files(folder, accounting=accounting)
    finally:
        os.umask(umask)
    with ExitStack() as stack:
        room = stack.enter_context(_process(["unshare", "-n", "sleep", "infinity"]))
        until(lambda: _has_network(room.pid), "a network")
        _run_in_network(room.pid, "ip link set lo up; ip link add br0 type bridge; ip link set br0 up")
        nodes = {name: stack.enter_context(_node(folder, name)) for name in NODES}
        pids = {name: _child(process) for name, process in nodes.items()}
        for name, pid in pids.items():
            _run_in_network(
                room.pid, f"ip link add v{name} type veth peer name eth0 netns {pid}; ip link set v{name} master br0 up"
            )
            _run_in_network(pid, f"ip link set lo up; ip addr add 10.78.0.{NODES[name]}/24 dev eth0; ip link set eth0 up")
            _begin(nodes[name])
        for name, process in nodes.items():
            _wait_for_services(process, folder / "nodes" / name / "log")
        university = University(folder, take_port(), take_port(), pids)
        for port, config in zip((university.port, university.two_factor_port), _METHODS, strict=True):
            stack.enter_context(_logins(university, port, config))
        idle = "sinfo -h -N -t idle -o %N | sort -u"
        until(lambda: len(university.inside("adm", idle, code=None).split()) == len(COMPUTE_NODES), "all nodes are idle")
        yield university


def _write_files(folder: Path, *, accounting: bool) -> None:
    """Write the files that the nodes share: /etc, homes with their start files, and the Python of the module."""
    folder.chmod(0o755)
    for name in NODES:
        for part in ("root", "scratch", "var/lib/slurm", "var/log", "var/tmp"):
            (folder / "nodes" / name / part).mkdir(parents=True)
        for part in ("scratch", "var/tmp"):
            (folder / "nodes" / name / part).chmod(0o1777)
    etc = folder / "etc"
    shutil.copytree(
        "/etc", etc, symlinks=True, ignore=shutil.ignore_patterns("profile.d", "slurm", "slurm-llnl", "update-motd.d")
    )
    shutil.copytree(_DATA / "slurm", etc / "slurm", copy_function=shutil.copyfile)
    (etc / "slurm").chmod(0o755)
    conf = (etc / "slurm/slurm.conf").read_text()
    if accounting:
        (etc / "slurm/slurm.conf").write_text(conf + (etc / "slurm/accounting.conf").read_text())
        (etc / "slurm/slurmdbd.conf").chmod(0o600)
        shutil.chown(etc / "slurm/slurmdbd.conf", "slurm", "slurm")
    else:
        (etc / "slurm/slurmdbd.conf").unlink()
    (etc / "slurm/accounting.conf").unlink()
    (etc / "munge").mkdir(exist_ok=True)
    (etc / "munge/munge.key").write_bytes(os.urandom(128))
    (etc / "munge/munge.key").chmod(0o400)
    for path in (etc / "munge", etc / "munge/munge.key"):
        shutil.chown(path, "munge", "munge")
    ssh = etc / "ssh"
    shutil.rmtree(ssh, ignore_errors=True)
    ssh.mkdir()
    ensure_client_key(ssh / "host_key")
    (ssh / "banner").write_text(_BANNER)
    for name, lines in _METHODS.items():
        (ssh / name).write_text(_SSHD + lines)
    (etc / "pam.d/sshd").write_text(_PAM)
    (etc / "motd").write_text("UNI-HPC: maintenance on Thursday. Your quota: 97 %\n")
    (etc / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"10.78.0.{last} {name}\n" for name, last in NODES.items()))
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nshadow: files\nhosts: files\n")
    (etc / "profile.d").mkdir()
    (etc / "profile.d/modules.sh").write_text(_MODULES)
    (etc / "profile.d/site.sh").write_text('export PROJECT="/project/$(id -un)"\n')
    for file in ("environment", "bash.bashrc", "csh.cshrc", "csh.login", "nologin"):
        (etc / file).unlink(missing_ok=True)
    public = ensure_client_key(folder / "key")
    _write_users(folder, public)
    _write_python(folder / "sw" / "pytorch")


def _write_users(folder: Path, public: str) -> None:
    etc = folder / "etc"
    for user, (number, shell) in USERS.items():
        for file, line in {
            "passwd": f"{user}:x:{number}:{number}::/home/{user}:{shell}",
            "group": f"{user}:x:{number}:",
            "shadow": f"{user}:{_HASH}:19000:0:99999:7:::",
        }.items():
            with (etc / file).open("a") as stream:
                stream.write(line + "\n")
        home, project = folder / "home" / user, folder / "project" / user
        (home / ".ssh").mkdir(parents=True)
        project.mkdir(parents=True)
        (home / ".ssh/authorized_keys").write_text(public + "\n")
        for file in (".bashrc", ".cshrc"):
            (home / file).write_text(_RC.format(user=user))
        (home / ".profile").write_text(". ~/.bashrc\n")
        for path in (project, home, *home.rglob("*")):
            shutil.chown(path, number, number)
        for path in (project, home, home / ".ssh"):
            path.chmod(0o700)


def _write_python(venv: Path) -> None:
    """Write a virtual environment with the packages of the tests, which the nodes mount."""
    program = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    (venv / "bin").mkdir(parents=True)
    for name in ("python", "python3", program.name):
        (venv / "bin" / name).symlink_to(program)
    (venv / "lib" / program.name / "site-packages").mkdir(parents=True)
    lines = f"home = {program.parent}\ninclude-system-site-packages = false\nsite-packages = {sysconfig.get_path('purelib')}\n"
    (venv / "pyvenv.cfg").write_text(lines)


@contextmanager
def _process(words: list[str], log: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process during the block. It ends when this process ends, for whatever reason."""
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *words],
        start_new_session=True, env=_clean_environment("root"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


@contextmanager
def _node(folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    role = {"adm": "controller", "login1": "login"}.get(name, "compute")
    unshare = ["unshare", "-m", "-n", "-u", "-i", "-p", "--fork", "--kill-child=KILL", "--propagation", "private"]
    words = [*unshare, "bash", str(_DATA / "node.sh"), str(folder), name, role, sys.base_prefix, str(_CHECKOUT)]
    with (folder / "nodes" / name / "log").open("wb") as log, _process(words, log.fileno()) as process:
        yield process


def _child(process: subprocess.Popen[bytes]) -> int:
    """Return the first process of a node: the child of unshare, in its own namespaces."""

    def find() -> int:
        for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            if _has_network(int(pid)):
                return int(pid)
        assert process.poll() is None, "unshare has ended"
        return 0

    return int(until(find, "a node in namespaces"))


def _has_network(pid: int) -> bool:
    """Return whether a process has its own network."""
    return Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()


def _run_in_network(pid: int, commands: str) -> None:
    subprocess.run(["nsenter", "-t", str(pid), "-n", "sh", "-ec", commands], check=True)


def _begin(process: subprocess.Popen[bytes]) -> None:
    """Tell a node that its network is ready."""
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()


def _wait_for_services(process: subprocess.Popen[bytes], log: Path) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n", log.read_text()


def _clean_environment(user: str) -> dict[str, str]:
    home = "/root" if user == "root" else f"/home/{user}"
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": home,
        "USER": user,
        "LANG": "C.UTF-8",
    }


@contextmanager
def _logins(university: University, port: int, config: str) -> Iterator[None]:
    """Accept connections on loopback, and hand each to an sshd on the login node."""
    server = socket.create_server(("127.0.0.1", port), backlog=64)
    children: list[subprocess.Popen[bytes]] = []
    sshd = [need("sshd"), "-i", "-f", f"/etc/ssh/{config}", "-E", "/var/log/sshd.log"]

    def accept() -> None:
        with suppress(OSError):  # closed at the end
            while True:
                connection, _ = server.accept()
                with connection:
                    end = connection.fileno()
                    words = [*university.enter("login1"), *sshd]
                    children.append(
                        subprocess.Popen(
                            words, stdin=end, stdout=end, stderr=subprocess.DEVNULL, env=_clean_environment("root")
                        )
                    )
                for child in [child for child in children if child.poll() is not None]:
                    children.remove(child)

    thread = threading.Thread(target=accept, name="logins")
    thread.start()
    try:
        yield
    finally:
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        thread.join()
        server.close()
        for child in children:
            child.kill()
            child.wait()


def main() -> None:
    """Run a cluster until Ctrl-C, and say what to type."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with (
        tempfile.TemporaryDirectory(prefix="uni-", ignore_cleanup_errors=True) as folder,
        run_university(Path(folder), accounting="--no-accounting" not in sys.argv) as university,
    ):
        home = Path(folder) / "me"
        university.introduce(home)
        lines = [
            f"ssh -F {home}/.ssh/config uni      # stud; also uni-dora, uni-2fa (password: {PASSWORD})",
            f"HOME={home} gpucourse ... uni      # finds the same hosts",
            *(f"{' '.join(university.enter(node))} bash -l      # root on {node}" for node in NODES),
        ]
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
