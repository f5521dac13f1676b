"""Edit the assembly that g++ makes of a program: zones after shared memory, and a second build of the kernels without hooks.

The program is built twice from the same source. The first build calls a hook at each access. The second one has no hooks,
and only its kernels run, for the blocks that are not watched (launching.hpp). It uses the variables of the first build. In
each of its loops a thread gives others their turn after a number of rounds, so that a lock or a flag does not wait for ever.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

ZONE = 1024  # bytes; variables.hpp has the same number
_OPERATORS = {"_Znwm": "new", "_Znam": "new"} | dict.fromkeys(("_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm"), "delete")
_LIBRARY = {  # symbols of the C and C++ libraries, and the emulator's functions for those that the program does not define
    **_OPERATORS,
    **{name: name for name in ("malloc", "free", "rand", "srand", "printf", "puts", "putchar", "putc")},
    "__assert_fail": "assert_fail",
    "random": "rand",
    "srandom": "srand",
}
_UNWATCHED = ".unwatched"  # ends the names of the second build's functions
_STATIC = r"(?P<function>_ZZ\w*E)\d+[A-Za-z_]\w*"
_ZEROED = re.compile(
    rf"(?P<size>\.size\t(?P<symbol>{_STATIC}), )(?P<bytes>\d+)(?P<zero>\n(?P=symbol):\n\t\.zero\t)(?P=bytes)\n"
)
_COMMON = re.compile(rf"(?P<comm>\.comm\t{_STATIC},)(?P<bytes>\d+),")
_HOOK = re.compile(r"^\tcall\t__tsan_(?:unaligned_|volatile_)?(?:read|write)\d+$", re.MULTILINE)  # on x86-64
_ASK = "\tmovq\t%rdi, %rax\n\tsubq\temulator_seen(%rip), %rax\n\tcmpq\temulator_seen+8(%rip), %rax\n\tja\t1f\n"
_FUNCTION = re.compile(r"^\t\.type\t([^\s,]+), @function$", re.MULTILINE)
_OBJECT = re.compile(  # a variable with its contents, or one without
    r"^\t\.type\t(?P<name>[^\s,]+), @(?:object|gnu_unique_object|tls_object)\n\t\.size\t(?P=name), \d+\n(?P=name):\n"
    r"(?:\t\.(?!align|bss|comm|data|globl|local|section|set|size|text|type|weak)[^\n]*\n)*"
    r"|^(?:\t\.local\t[^\s,]+\n)?\t\.comm\t(?P<common>[^\s,]+),[^\n]*\n",
    re.MULTILINE,
)
_VISIBLE = re.compile(r"^\t\.(?:globl|weak)\t(\S+)$", re.MULTILINE)
_OWN_OPERATOR = re.compile(rf"^\t\.globl\t(?:{'|'.join(_OPERATORS)})$", re.MULTILINE)
_LOCAL = re.compile(r"^\t\.local\t(\S+)\n", re.MULTILINE)
_MADE_BY_COMPILER = re.compile(r"\.\d+$")  # such a name may mean something else in the other build
_GROUP = re.compile(r'^(\t\.section\t[^\n"]+,"\w*)G(\w*",@\w+(?:,\d+)?),[^\n]*,comdat$', re.MULTILINE)
_CONSTRUCTOR = re.compile(
    r"^(\t\.section\t\.(?:init|fini)_array[^\n]*\n(?:\t\.align[^\n]*\n)?)\t\.quad\t[^\n]*\n", re.MULTILINE
)
_LAUNCHED = re.compile(r"_ZN8emulator6LaunchI\w+4makeEPv")  # what a launch calls (cuda_runtime.h)
_NAMING = re.compile(r"(?:\t(?:call|jmp|\.globl|\.weak|\.hidden|\.type|\.size|\.set)\t)?([\w.]+)(?:,([\w.]+))?")
_JUMP = re.compile(r"\t(j\w+)\t(\.L\d+)")
_SETS_FLAGS = re.compile(
    r"\t(?:(?:lock )?(?:add|sub|cmp|test|and|x?or|neg|inc|dec|sal|shl|sar|shr|rol|ror|i?mul|bt|bs[fr]|cmpxchg|xadd)[bwlq]"
    r"|u?comis[sd]|fu?comip?|call|ret)\b"
)
_NEEDS_FLAGS = re.compile(r"\t(?:j|set|f?cmov|adc|sbb|rc[lr])")


def finish(assembly: str) -> str:
    """Return the assembly with the zones, and with the emulator's versions of some library functions, such as `malloc`.

    A zone is ZONE extra bytes after each function's static variables, so that accesses beyond __shared__ show. Hooks are called
    only for the addresses that they must see.
    """

    def widen_zeroed(match: re.Match[str]) -> str:
        bytes_ = int(match["bytes"]) + ZONE
        return f"{match['size']}{bytes_}{match['zero']}{bytes_}\n"

    assembly = _HOOK.sub(rf"{_ASK}\g<0>\n1:", _ZEROED.sub(widen_zeroed, assembly))
    assembly = _COMMON.sub(lambda match: f"{match['comm']}{int(match['bytes']) + ZONE},", assembly)
    assembly = _OWN_OPERATOR.sub("", assembly)  # the emulator keeps those of the library
    defined = {name.removesuffix(_UNWATCHED) for name in _FUNCTION.findall(assembly)}
    return assembly + "".join(
        f"\t.set {symbol}, emulator_{name}\n" for symbol, name in _LIBRARY.items() if symbol not in defined
    )


def count_static_bytes(assembly: str) -> Counter[str]:
    """Return the bytes of the static variables of each function, by its mangled name."""
    sizes: Counter[str] = Counter()
    for match in [*_ZEROED.finditer(assembly), *_COMMON.finditer(assembly)]:
        sizes[match["function"]] += int(match["bytes"])
    return sizes


def share(watched: str, unwatched: str) -> tuple[str, str]:
    """Return the assembly of both builds, changed so that they can be linked into one program.

    Functions of the second build get other names. Its variables are those of the first build, and its pointers to functions
    point to the first build, which is slower but right.
    """
    functions = set(_FUNCTION.findall(unwatched))
    of_watched = set(_FUNCTION.findall(watched)) | set(_list_objects(watched))
    shared = (functions | set(_list_objects(unwatched))) & of_watched
    shared = {name for name in shared if not _MADE_BY_COMPILER.search(name)}
    lines = _remove_variables(unwatched, shared).split("\n")
    lines = [*_rename(_add_turns(lines), functions & shared), '\t.section\temulator_unwatched,"a"', "\t.balign\t8"]
    lines += [f"\t.quad\t{name}, {name}{_UNWATCHED}" for name in sorted(functions & shared) if _LAUNCHED.fullmatch(name)]
    watched = _LOCAL.sub(lambda match: "" if match[1] in shared else match[0], watched)
    exported = sorted(shared - set(_VISIBLE.findall(watched)))
    return watched + "".join(f"\t.globl\t{name}\n" for name in exported), "\n".join(lines) + "\n"


def _list_objects(assembly: str) -> Iterator[str]:
    return (match["name"] or match["common"] for match in _OBJECT.finditer(assembly))


def _remove_variables(assembly: str, shared: set[str]) -> str:
    """Return the assembly of the second build, without the variables `shared` and without the code that runs before `main`."""
    assembly = _OBJECT.sub(lambda match: "" if (match["name"] or match["common"]) in shared else match[0], assembly)
    return _CONSTRUCTOR.sub(r"\1", _GROUP.sub(r"\1\2", assembly))


def _rename(lines: Iterable[str], functions: set[str]) -> Iterator[str]:
    """Yield the lines with another name for each function, at its definition and its calls."""
    for line in lines:
        match = _NAMING.match(line)
        names = functions.intersection(match.groups()) if match else ()
        new = line
        for name in names:
            new = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", f"{name}{_UNWATCHED}", new)
        yield new


def _add_turns(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines with a detour in each jump to an earlier line: it counts rounds, and then gives other threads a turn."""
    labels: dict[str, int] = {}
    place = ""  # the line of the source, as `.loc` says it
    detours: list[str] = []  # at the end of the function, where addr2line finds their lines
    for number, line in enumerate(lines):
        jump = _JUMP.fullmatch(line)
        if line.startswith("\t.loc "):
            place = line
        if line.startswith(".L"):
            labels[line.rstrip(":")] = number
        if line == "\t.cfi_endproc":
            yield from detours
            detours = []
        if jump is None or jump[2] not in labels or _needs_flags(lines, labels[jump[2]]):
            yield line
            continue
        yield f"\t{jump[1]}\t.LTURN{number}"
        detours += [place, f".LTURN{number}:", "\tdecl\temulator_turn(%rip)", f"\tjne\t{jump[2]}", f"\tpushq\t${jump[2]}"]
        detours += ["\tjmp\temulator_yield"]
    yield from detours


def _needs_flags(lines: Sequence[str], first: int) -> bool:
    """Return whether a comparison before this line is used after it."""
    for number in range(first, len(lines)):
        if _SETS_FLAGS.match(lines[number]):
            return False
        if _NEEDS_FLAGS.match(lines[number]):
            return True
    return True
