"""Python processes that start with their libraries imported, for tests: importing torch takes 1.6 s of processor time, a
command 0.3 s.

A `Fork` does what `python SCRIPT ...` or `python -m gpucourse ...` would do, in a fork of one process that has imported the
libraries but nothing of the script. Only the interpreter's start and end are replaced; the script or the command, its
environment, files, sockets and exit code are real. Run as a module, this file is that process: it forks for each request that
comes through a socket, and reports how each fork ended. All test processes share one server; SHARED names the folder of its
address.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import fcntl
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

if TYPE_CHECKING:
    from gpucourse.model.manifest import Module

ROOT = Path(__file__).parent.parent
SHARED = "GPUCOURSE_TESTS_SHARED"
"""The variable with the folder that all test processes share. `tests/conftest.py` makes one for each run."""
FAKE_GPU = ROOT / "tests" / "fake_gpu"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
INTERPRETED = {
    "TRITON_INTERPRET": "1"
}  # torch._dynamo imports triton, which reads it then: scripts run kernels in the interpreter
"""Variables that libraries of a script read only when they are loaded. A fork cannot have another value."""
ENDING_S = 10.0
KEPT = ("PATH", "LANG", "HOME", "TMPDIR", "XDG_CACHE_HOME")
READ_AT_START = ("PYTHON", "LD_", "LC_", "TZ", "TERMINAL_WIDTH", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "_TYPER")
"""Prefixes of variables that Python or a library reads only once. With such a variable, a command is not forked."""
IMPORTED = {
    "torch": ("numpy", "torch", "torch.distributed", "torch._dynamo", "torch.utils.benchmark", "torch.nn.parallel"),
    "gpucourse": ("paramiko", "boto3", "rich.live", "rich.table", "typer.rich_utils", "matplotlib.backends.backend_agg"),
    "moto": ("tests.mock_aws.server", "tests.mock_aws.warm"),
}
SERVICES = ("ec2", "efs", "iam", "resourcegroupstaggingapi", "scheduler", "service-quotas", "ssm", "sts")


class Fork:
    """A running script or command, with the part of subprocess.Popen's interface that tests use."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        env: Mapping[str, str],
        *,
        has_own_stderr: bool = False,
        library: str = "",
        streams: Sequence[int] = (),
    ) -> None:
        """Start the script or command.

        `has_own_stderr`: standard error is separate from standard output.
        `library`: the library that is already imported, by default gpucourse for a command and torch for a script.
        `streams`: its standard input, if it has one.
        """
        self.args = list(words)
        self.returncode: Any = None  # as subprocess has it
        self._files = [tempfile.NamedTemporaryFile(prefix="gpucourse-fork-") for _ in range(1 + has_own_stderr)]  # noqa: SIM115
        outputs = (self._files[0].name, self._files[-1].name)
        request = {"words": self.args, "folder": str(folder), "env": dict(env), "outputs": outputs}
        library = library or ("gpucourse" if words[1] == "-m" else "torch")
        self._answers = _find_server(library, env.get("PYTHONPATH", "")).start(request, streams)
        self.pid = self._read_answer()

    def poll(self) -> Any:
        """Return the exit code (negative for a signal), or None while it runs."""
        self._wait(0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str | None]:
        """Wait for the end and return the outputs. Raises subprocess.TimeoutExpired, after which it can be called again."""
        self._wait(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        texts = []
        for output in self._files:
            with output as file:
                texts.append(file.read().decode(errors="replace"))
        return texts[0], texts[1] if len(texts) > 1 else None

    def send_signal(self, number: int) -> None:
        """Send a signal to the process. Do nothing if it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it ended just now
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM to the process."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL to the process."""
        self.send_signal(signal.SIGKILL)

    def print_stacks(self) -> None:
        """End the process with SIGABRT, at which Python prints the stacks of its threads to standard error."""
        self.send_signal(signal.SIGABRT)
        self._wait(ENDING_S)

    def _wait(self, timeout: float | None) -> None:
        if self.returncode is None and select.select([self._answers], [], [], timeout)[0]:
            self.returncode = self._read_answer()
            self._answers.close()

    def _read_answer(self) -> int:
        data = self._answers.recv(64)
        if not data:
            raise RuntimeError("the process that imports for others has ended")
        return int(data)


def describe_descendants(pid: int) -> str:
    """Return the live processes below a process, one on each line: its id and its words."""
    lines = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        children = []
        with contextlib.suppress(OSError):  # it ended just now
            children = file.read_text().split()
        for child in children:
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ")
                lines += [f"{child} {words.decode(errors='replace')}", describe_descendants(int(child))]
    return "\n".join(filter(None, lines))


def can_start(words: Sequence[str], env: Mapping[str, str]) -> bool:
    """Return whether a fork behaves like a new interpreter: it is a script or a command, and no variable is set that is read
    only once.
    """
    if tuple(words[:3]) == (sys.executable, "-m", "gpucourse"):
        return env.get("LANG") == os.environ.get("LANG") and not any(name.startswith(READ_AT_START) for name in env)
    plain = words[0] == sys.executable and len(words) > 1 and words[1].endswith(".py")
    is_plain = env.get("PYTHONPATH", "") in {"", str(FAKE_GPU)} and not any(name.startswith("FAKE_GPU_") for name in env)
    return plain and is_plain and ONE_THREAD.items() <= env.items()


class _Server:
    """The tests' connection to the process that has imported the libraries. That process ends with the last process that is
    connected to it.
    """

    def __init__(self, library: str, path: str) -> None:
        """Connect to the server. Start it if there is none."""
        address = Path(os.environ[SHARED]) / f"{library}{'-gpu' if path else ''}"
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with _hold(address):
            try:
                self._line.connect(str(address))
            except (FileNotFoundError, ConnectionRefusedError):
                address.unlink(missing_ok=True)
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
                    door.bind(str(address))
                    door.listen()
                    self._line.connect(str(address))
                    # It ends with the last connection, maybe after this process: do not wait, and do not warn about that.
                    start_server(library, path, door).returncode = 0
        atexit.register(self._line.close)

    def start(self, request: dict[str, Any], streams: Sequence[int]) -> socket.socket:
        """Request a fork. Return the socket on which its process id, and later its exit code, arrive."""
        parent_end, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with child_end:
            socket.send_fds(self._line, [json.dumps(request).encode()], [child_end.fileno(), *streams])
        return parent_end


def start_server(library: str, path: str, door: socket.socket) -> subprocess.Popen[bytes]:
    """Start and return the process that imports a library. Connections arrive at the socket `door`."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ} | ONE_THREAD | INTERPRETED
    return subprocess.Popen(
        [sys.executable, "-m", "tests.forks", library, str(door.fileno())],
        cwd=ROOT,
        env=environment | ({"PYTHONPATH": path} if path else {}),
        pass_fds=[door.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # not a terminal, so Python buffers it like a file or a pipe
    )


@contextlib.contextmanager
def _hold(address: Path) -> Iterator[None]:
    """Hold the server's lock during the block, so that no other process starts or ends the server of this address."""
    with address.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


_servers: dict[tuple[str, str], _Server] = {}
_starting = threading.Lock()


def _find_server(library: str, path: str) -> _Server:
    with _starting:
        if (library, path) not in _servers:
            _servers[library, path] = _Server(library, path)
        return _servers[library, path]


def load(library: str) -> None:
    """Import the modules that the forks will need."""
    for name in (*IMPORTED[library], *(_list_modules() if library == "gpucourse" else ())):
        importlib.import_module(name)
    if library == "gpucourse":
        _read_models()
        from gpucourse.course import catalog
        from gpucourse.course.locate import find_course

        cast("Any", catalog).read_module = make_manifest_reader()
        list(catalog.load(find_course({})).iterate())
    gc.freeze()  # otherwise, garbage collection in a fork would copy all this memory


def _read_models() -> None:
    """Read AWS's descriptions of its services, which the program reads once per process."""
    from gpucourse.aws.session import Account

    account = Account("us-east-2", {"AWS_ACCESS_KEY_ID": "nobody's", "AWS_SECRET_ACCESS_KEY": "nobody's"})
    for service in SERVICES:
        account.client(service)


def make_manifest_reader() -> Callable[[Path, Path], Module]:
    """Return a function like `catalog.read_module` that reads each manifest of this repository's course only once. A process of
    the program reads one or more, in 0.03 s each."""
    from gpucourse.course import catalog
    from gpucourse.course.locate import find_course

    read, course = catalog.read_module, find_course({}).modules
    read_once = functools.cache(read)
    return lambda folder, exercises: (read_once if folder.parent == course else read)(folder, exercises)


def _list_modules() -> Iterator[str]:
    import gpucourse

    for module in pkgutil.walk_packages(gpucourse.__path__, "gpucourse."):
        if not module.name.startswith(("gpucourse.local", "gpucourse.remote.agent")):  # these run on nodes
            yield module.name


def serve(door: socket.socket) -> dict[str, Any] | None:
    """Fork for each request until every connection is closed. Connections arrive at `door`. Return the request in a fork, and
    None in the server.
    """
    lines = [door.accept()[0]]
    wakes, wake = os.pipe2(os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    callers: dict[int, socket.socket] = {}
    while lines:
        waits: list[Any] = [*lines, door, wakes]
        ready = select.select(waits, [], [])[0]
        if wakes in ready:
            os.read(wakes, 4096)
            _report_ended(callers)
        if door in ready:
            lines.append(door.accept()[0])
        for line in [line for line in lines if line in ready]:
            text, files, *_ = socket.recv_fds(line, 1 << 20, 4)
            if not text:
                lines.remove(line)
                line.close()
                lines += [] if lines else _close(door)
                continue
            answers, *streams = files
            caller = socket.socket(fileno=answers)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for inherited in (wakes, wake):
                    os.close(inherited)
                for endpoint in (caller, *callers.values(), *lines, door):
                    endpoint.close()
                return {**json.loads(text), "streams": streams}
            for stream in streams:
                os.close(stream)
            callers[pid] = caller
            _answer(caller, pid)
    return None


def _close(door: socket.socket) -> list[socket.socket]:
    """Stop accepting connections, and return an empty list. If a connection has just arrived, return it instead, and keep
    accepting."""
    address = Path(door.getsockname())
    with contextlib.suppress(FileNotFoundError), _hold(address):  # the tests may have removed their folder
        if select.select([door], [], [], 0)[0]:
            return [door.accept()[0]]
        address.unlink()
    return []


def _report_ended(callers: dict[int, socket.socket]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        with callers.pop(pid) as caller:
            _answer(caller, os.waitstatus_to_exitcode(status))


def _answer(caller: socket.socket, number: int) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the caller no longer waits
        caller.sendall(str(number).encode())


def take_over(request: dict[str, Any]) -> None:
    """Become the requested process in a fork, up to its first line."""
    streams = dict(enumerate(request["streams"]))  # passed by the caller, if they are not files
    streams |= {stream: os.open(name, os.O_WRONLY | os.O_APPEND) for stream, name in enumerate(request["outputs"], 1)}
    for stream, file in streams.items():
        os.dup2(file, stream)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    _, *arguments = request["words"]
    if arguments[0] == "-m":
        sys.argv = [str(ROOT / "src/gpucourse/__main__.py"), *arguments[2:]]
        sys.path[0] = request["folder"]
    else:
        sys.argv = arguments
        sys.path[0] = str(Path(arguments[0]).parent.absolute())


def run(words: Sequence[str]) -> NoReturn:
    """Run the requested script or command in a fork, and exit as an interpreter does. Libraries are not torn down, which saves
    0.3 s.
    """
    code = 0
    try:
        if words[1] == "-m":
            from gpucourse.__main__ import main

            faulthandler.enable()  # for Fork.print_stacks
            main()
        elif words[1] == "-u":  # -u -c TEXT
            exec(words[-1], vars(sys.modules["__main__"]))
        else:
            runpy.run_path(words[1], run_name="__main__")
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        code = ended.code
    except Exception:  # noqa: BLE001 (as the interpreter does)
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the interpreter does
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    load(sys.argv[1])
    with socket.socket(fileno=int(sys.argv[2])) as connection:
        request = serve(connection)
    if request is not None:
        take_over(request)
        run(request["words"])
