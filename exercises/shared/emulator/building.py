"""Building a .cu file for the CPU: it is rewritten, compiled by g++ with a hook at each access, and linked."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from emulator.cuda_source import SourceError, list_includes, list_kernels, read_source, rewrite
from emulator.program import Program

HERE = Path(__file__).resolve().parent
STANDARD = ("-std=c++17", "-fno-pie", "-U_FORTIFY_SOURCE", "-w")
KERNEL_FLAGS = (
    *STANDARD,
    "-O1",
    "-g1",
    "-fsanitize=thread",
    "-fno-tree-sra",
    "-fmax-errors=5",
    "-fno-diagnostics-show-caret",
    "-fno-show-column",
)
LINES_SHOWN, LONGEST_LINE = 5, 300
COMPILE_S = 120.0
MOST_KEPT = 60  # programs in the cache
ZONE = 1024  # bytes; variables.hpp has the same number
SHARED_LIMIT = 48 << 10  # bytes of a block's static shared memory
_STATIC = r"(?P<function>_ZZ\w*E)\d+[A-Za-z_]\w*"
_ZEROED = re.compile(
    rf"(?P<size>\.size\t(?P<symbol>{_STATIC}), )(?P<bytes>\d+)(?P<zero>\n(?P=symbol):\n\t\.zero\t)(?P=bytes)\n"
)
_COMMON = re.compile(rf"(?P<comm>\.comm\t{_STATIC},)(?P<bytes>\d+),")
_OURS = re.compile(rf"{re.escape(str(HERE))}/|<lambda\(auto:|^\s+from |^In file included")
_PLACE = re.compile(
    r"^([^\s:][^:\n]*):(\d+): (?:(?:fatal )?error: )?((?<=error: ).*|undefined reference.*|multiple definition.*)$",
    re.MULTILINE,
)


class UnsupportedMachine(Exception):
    """This computer cannot run the emulator. The text says what to do."""


class CompileError(Exception):
    """A file that does not compile: the compiler's first five lines as `text`, the first error as `file`, `line`, `message`."""

    def __init__(self, text: str, file: str, line: int, message: str) -> None:
        super().__init__(text)
        self.text, self.file, self.line, self.message = text, file, line, message


def find_compiler() -> str | None:
    """The path of g++, None if there is none."""
    return shutil.which("g++")


def build(
    sources: Sequence[Path],
    *,
    folder: Path,
    defines: Mapping[str, object] | None = None,
    cache: Path | None = None,
) -> Program:
    """A program from `sources`: the first one is compiled; the others are files that it includes.

    A file that is included and not named is looked for beside the file that includes it. `defines` are macros. What was built
    before is taken from `cache` (the user's cache folder, where none is named; `folder` where that cannot be written).
    Raises CompileError, UnsupportedMachine.
    """
    compiler = _need_compiler()
    texts = _collect(sources)
    head = [
        "#include <cuda_runtime.h>",
        *(f"#define {name} {value}" for name, value in (defines or {}).items()),
    ]  # as nvcc does
    texts[sources[0].name] = "\n".join([*head, texts[sources[0].name]])
    key = _hash([compiler, _describe_compiler(compiler), *KERNEL_FLAGS, _hash_emulator()], texts)
    store = _choose_store(cache, folder)
    program = Program(store / f"program-{key}", frozenset(texts))
    if not program.path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as work:
            _compile(compiler, texts, sources[0].name, Path(work), store, program.path)
        _forget_old(store)
    with suppress(OSError):  # used now: it is not among the oldest
        os.utime(program.path)
    return program


def _need_compiler() -> str:
    if sys.platform != "linux":
        raise UnsupportedMachine(
            f"the CUDA emulator needs Linux, and this is {platform.system()}: use a Linux machine of your own (--target hosts, "
            "or --target here on it), or one of AWS (--target aws)"
        )
    compiler = find_compiler()
    if compiler is None:
        raise UnsupportedMachine(
            "the CUDA emulator needs g++, which is not installed: sudo apt-get install g++ (Fedora: gcc-c++)"
        )
    return compiler


def _collect(sources: Sequence[Path]) -> dict[str, str]:
    """The rewritten text of each file, by its name. Raises CompileError for one that cannot be rewritten."""
    waiting, texts = list(sources), {}
    while waiting:
        path = waiting.pop(0)
        if path.name in texts:
            continue
        try:
            text = read_source(path)
            texts[path.name] = f'#line 1 "{path.name}"\n{rewrite(text)}'
        except SourceError as error:
            words = f"{path.name}:{error.line}: {error.message}"
            raise CompileError(words, path.name, error.line, error.message) from None
        waiting += [beside for name in list_includes(text) if (beside := path.parent / name).is_file()]
    return texts


def _compile(compiler: str, texts: Mapping[str, str], first: str, work: Path, store: Path, target: Path) -> None:
    for name, text in texts.items():
        (work / name).write_text(text, encoding="utf-8")
    emulator = _Emulator(compiler, store, work)
    words = [compiler, *KERNEL_FLAGS, f"-I{HERE}", "-x", "c++", "-S", first, "-o", "kernels.s"]
    done = _run(words, work)
    if done.returncode != 0:
        emulator.end()
        raise _explain(done.stderr, texts, work)
    assembly = work / "kernels.s"
    text = assembly.read_text(encoding="utf-8", errors="surrogateescape")
    check_shared_size(text, texts)
    assembly.write_text(add_zones(text), encoding="utf-8", errors="surrogateescape")
    built = work / "program"
    linked = _run([compiler, "-no-pie", "kernels.s", str(emulator.wait()), "-o", str(built)], work)
    if linked.returncode != 0:
        raise _explain(linked.stderr, texts, work)
    _move(built, target)


def add_zones(assembly: str) -> str:
    """The assembly with ZONE bytes more behind each static of a function, so that what misses a __shared__ variable is seen."""

    def widen_zeroed(match: re.Match[str]) -> str:
        bytes_ = int(match["bytes"]) + ZONE
        return f"{match['size']}{bytes_}{match['zero']}{bytes_}\n"

    assembly = _ZEROED.sub(widen_zeroed, assembly)
    return _COMMON.sub(lambda match: f"{match['comm']}{int(match['bytes']) + ZONE},", assembly)


def check_shared_size(assembly: str, texts: Mapping[str, str]) -> None:
    """Raise CompileError for a kernel with more static shared memory than a block can have, as nvcc does."""
    sizes: Counter[str] = Counter()  # by the mangled name of the function
    for match in [*_ZEROED.finditer(assembly), *_COMMON.finditer(assembly)]:
        sizes[match["function"]] += int(match["bytes"])
    for file, text in texts.items():
        for kernel, line in list_kernels(text.partition(f'#line 1 "{file}"\n')[2]).items():
            name = re.compile(rf"_ZZ(?:N\w*?)?{len(kernel)}{kernel}(?=[A-Z])")
            most = max((size for function, size in sizes.items() if name.match(function)), default=0)
            if most > SHARED_LIMIT:
                said = f"{kernel} has {most:,} bytes of shared memory, and a block may have {SHARED_LIMIT:,} (so says nvcc)"
                raise CompileError(f"{file}:{line}: {said}", file, line, said)


class _Emulator:
    """The emulator's own object: taken from the store, or compiled while the kernels are."""

    def __init__(self, compiler: str, store: Path, work: Path) -> None:
        self.path = store / f"emulator-{_hash([compiler, _describe_compiler(compiler), _hash_emulator()], {})}.o"
        self.made = work / "emulator.o"
        self.process: subprocess.Popen[bytes] | None = None
        try:  # a copy of its own: another build may forget the one in the store meanwhile
            shutil.copyfile(self.path, self.made)
            os.utime(self.path)
        except OSError:
            words = [compiler, *STANDARD, "-O2", "-c", str(HERE / "emulator.cpp"), "-o", str(self.made)]
            self.process = subprocess.Popen(words, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def wait(self) -> Path:
        """The object's path, once it exists. Raises UnsupportedMachine if this compiler cannot build it."""
        if self.process is None:
            return self.made
        _, complaint = self.process.communicate(timeout=COMPILE_S)
        if self.process.returncode != 0:
            first = next(iter(complaint.decode(errors="replace").splitlines()), "no reason")
            raise UnsupportedMachine(
                f"this g++ cannot compile the CUDA emulator, which needs g++ 9 or newer: {first[:LONGEST_LINE]}"
            )
        _move(self.made, self.path)
        return self.made

    def end(self) -> None:
        """End the compiler, where it still runs, or keep what it made."""
        if self.process is not None:
            with suppress(UnsupportedMachine):
                self.wait()


def _run(words: list[str], work: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(
            words, cwd=work, env=environment, capture_output=True, text=True, errors="replace", timeout=COMPILE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 1, "", f"{words[-3]}:1: error: g++ did not end within {COMPILE_S:g} s")


def _explain(complaint: str, texts: Iterable[str], work: Path) -> CompileError:
    """The error of a compiler that ended with these lines."""
    complaint = complaint.replace(f"{work}/", "")
    lines = [line[:LONGEST_LINE] for line in complaint.splitlines() if line.strip() and not _OURS.search(line)]
    matches = [(match[1], int(match[2]), match[3]) for match in _PLACE.finditer(complaint)]
    own = [match for match in matches if Path(match[0]).name in set(texts)]
    file, line, message = next(iter(own or matches), ("", 0, lines[0] if lines else "g++ said nothing"))
    return CompileError("\n".join(lines[:LINES_SHOWN]), Path(file).name, line, message)


def _choose_store(cache: Path | None, folder: Path) -> Path:
    """A writable folder of this user alone, for what was built; `folder` if there is none."""
    home = os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME") or folder) / ".cache"
    for place in (cache or Path(home) / "gpucourse" / "emulator", folder):
        try:
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            status = place.stat()
        except OSError:
            continue
        if status.st_uid == os.getuid() and not status.st_mode & 0o022 and os.access(place, os.W_OK | os.X_OK):
            return place
    return folder


def _move(built: Path, target: Path) -> None:
    """Put a file in its place in one step: another process that builds the same at the same time puts the same file there."""
    temporary = target.with_name(f".{target.name}-{os.getpid()}")
    try:
        shutil.copy2(built, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _forget_old(store: Path) -> None:
    """Keep only the most recently used files of a store."""
    with suppress(OSError):
        for pattern, most in (("program-*", MOST_KEPT), ("emulator-*", 3)):
            for path in sorted(store.glob(pattern), key=lambda path: path.stat().st_mtime)[:-most]:
                path.unlink(missing_ok=True)


def _describe_compiler(compiler: str) -> str:
    """What changes when another g++ is installed: its real path, size and time."""
    real = Path(compiler).resolve()
    status = real.stat()
    return f"{real} {status.st_size} {status.st_mtime_ns}"


def _hash_emulator() -> str:
    return _hash([], {path.name: path.read_text() for path in sorted(HERE.iterdir()) if path.suffix in {".h", ".hpp", ".cpp"}})


def _hash(words: Sequence[str], texts: Mapping[str, str]) -> str:
    parts = [*words, *(part for item in sorted(texts.items()) for part in item)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
