"""Rewrite launches and dynamic shared memory in a .cu file for g++. Every line keeps its number."""

from __future__ import annotations

import re
from pathlib import Path

MAX_FILE_BYTES = 1 << 18  # bytes of one file
MAX_NAME = 1000  # characters of a kernel's name with its template arguments, or of how it is launched
OPENS, CLOSES = "([{", ")]}"
_NOT_CODE = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|R"(?P<mark>[^()\\\s]{0,16})\(.{0,9999}?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)
_DYNAMIC = re.compile(
    r"\b(?:extern\s+__shared__|__shared__\s+extern)\s+((?:__align__|alignas)\s*\([^)]*\)\s*)?([\w:<>\s]{1,200}?)\s+(\w+)\s*\[\s*\]\s*;"
)
_VARIABLE = re.compile(r"\b(__device__|__constant__|__managed__)\b([^;(){}=\[]{0,200})(?=[;={\[])")
_CALLEE = re.compile(r"[A-Za-z_]\w*(?:\s*::\s*\w+)*\s*\Z")
_KERNEL = re.compile(r"\b__global__\b[^;{}()]{0,300}?\b(\w+)\s*\(")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


class SourceError(Exception):
    """A file cannot be rewritten. `line` counts from 1, and `message` gives the reason."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(line, message)
        self.line, self.message = line, message


def read_source(path: Path) -> str:
    """Return the text of a .cu file without a byte order mark, line ends as "\\n". Raises SourceError if it is not text."""
    data = path.read_bytes()
    if len(data) > MAX_FILE_BYTES:
        raise SourceError(1, f"the file has {len(data) >> 10} KB, but may have at most {MAX_FILE_BYTES >> 10}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SourceError(line, "this is not text in UTF-8: save the file again as UTF-8") from None
    if "\0" in text:
        raise SourceError(text[: text.index("\0")].count("\n") + 1, "this is not text: save the file again as UTF-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def blank_out(text: str, *, keep_strings: bool = False) -> str:
    """Return the text with comments (and strings) replaced by spaces of the same length."""

    def blank(match: re.Match[str]) -> str:
        if keep_strings and match[0][0] != "/":
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    return _NOT_CODE.sub(blank, text)


def list_includes(text: str) -> list[str]:
    """Return the files that a text includes by `#include "..."`."""
    return _INCLUDE.findall(blank_out(text, keep_strings=True))


def rewrite(text: str) -> str:
    """Return the text in a form that g++ can compile with the emulator's headers.

    Raises SourceError for features that the emulator does not have.
    """
    code = blank_out(text)
    for match in _VARIABLE.finditer(code):
        if not re.search(r"\boperator\b|\bstruct\b|\bclass\b|<", match[2]):
            line = code[: match.start()].count("\n") + 1
            raise SourceError(line, f"the emulator has no {match[1]} variables: give the kernel a pointer to memory instead")
    for match in re.finditer(r"\b__shared__\b", code):
        preceding = code[: match.start()]
        if preceding.count("{") == preceding.count("}") and "extern" not in code[max(0, match.start() - 8) : match.end() + 8]:
            raise SourceError(
                preceding.count("\n") + 1, "declare a __shared__ variable inside its kernel: the emulator has no others"
            )
    edits = [*_find_launches(text, code), *_find_dynamic(code)]
    pieces, position = [], 0
    for start, end, new in sorted(edits):
        if start >= position:  # of two that overlap (no correct file has these), the first
            pieces += [text[position:start], new]
            position = end
    return "".join([*pieces, text[position:]])


def list_kernels(text: str) -> dict[str, int]:
    """Return the line of each kernel that a text defines, by the kernel's name."""
    code = re.sub(r"__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)", lambda match: " " * len(match[0]), blank_out(text))
    return {match[1]: code[: match.start()].count("\n") + 1 for match in _KERNEL.finditer(code)}


def _find_dynamic(code: str) -> list[tuple[int, int, str]]:
    """Turn `extern __shared__ T name[];` into an alias of the emulator's memory."""
    edits = []
    for match in _DYNAMIC.finditer(code):
        kind = " ".join(match[2].split())
        new = f"{kind} (&{match[3]})[] = reinterpret_cast<{kind} (&)[]>(emulator_dynamic_memory);"
        edits.append((*match.span(), new + "\n" * match[0].count("\n")))
    return edits


def _find_launches(text: str, code: str) -> list[tuple[int, int, str]]:
    """Turn `kernel<T><<<grid, block>>>` into `emulator::launch("kernel<T>", a call of it, grid, block)`; its arguments
    follow."""
    edits = []
    place = code.find("<<<")
    while place >= 0:
        callee = _find_callee(code, place)
        end = _find_end(code, place + 3)
        if callee is not None and end is not None:
            kernel, configuration = text[callee:place], text[place + 3 : end]
            name = re.sub(r"\s+", " ", code[callee:place]).strip().replace('"', "")
            call = f"[&](auto... given) EMULATOR_UNSEEN {{ {kernel.rstrip()}(given...); }}"
            gap = "\n" * (kernel[len(kernel.rstrip()) :].count("\n"))
            edits.append((callee, end + 3, f'emulator::launch("{name}", {call}{gap}, {configuration})'))
        place = code.find("<<<", place + 3)
    return edits


def _find_callee(code: str, end: int) -> int | None:
    """Return where the callee of the launch at `end` begins, or None if there is none.

    A callee is `name`, `space::name<8>`, `names[i]` or `(*name)`.
    """
    place = len(code[:end].rstrip())
    if code[:place].endswith(">"):
        place = len(code[: _skip_back(code, place, "<", ">")].rstrip())
    brackets = place
    while code[:brackets].endswith((")", "]")):
        closing = code[brackets - 1]
        brackets = len(code[: _skip_back(code, brackets, OPENS[CLOSES.index(closing)], closing)].rstrip())
    first = max(0, brackets - MAX_NAME)
    match = _CALLEE.search(code[first:brackets])
    if match:
        return first + match.start()
    return brackets if brackets < place else None


def _skip_back(code: str, place: int, opening: str, closing: str) -> int:
    """Return where the bracket opens that closes before `place`. Angle brackets count only outside round brackets."""
    depth = nesting = 0
    first = max(0, place - MAX_NAME)
    while place > first:
        place -= 1
        if opening == "<":
            nesting += (code[place] == ")") - (code[place] == "(")
        if not nesting:
            depth += (code[place] == closing) - (code[place] == opening)
        if depth == 0 or code[place] in ";{}":
            break
    return place


def _find_end(code: str, place: int) -> int | None:
    """Return where a launch's `>>>` is, outside all brackets, or None if there is none."""
    depth = 0
    last = min(len(code), place + MAX_NAME)
    while place < last and not code.startswith("<<<", place):
        if depth == 0 and code.startswith(">>>", place) and code[place + 3 : place + 4] != ">":
            return place
        depth += (code[place] in OPENS) - (code[place] in CLOSES)
        if depth < 0 or (code[place] == ";" and depth == 0):
            return None
        place += 1
    return None
