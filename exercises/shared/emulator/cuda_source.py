"""Rewrite preprocessed CUDA for g++: qualifiers, launches, shared memory, variables of the device and PTX. Every line keeps its
number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.ptx import UnknownPtx, name_remedy, translate

MAX_FILE_BYTES = 1 << 20  # bytes of one file
MAX_NAME = 1000  # characters of a kernel's name with its template arguments, or of how it is launched
OPENS, CLOSES = "([{", ")]}"
Edit = tuple[int, int, str]  # from, to, and the new text

_MARKER = re.compile(r'^# (\d+) "((?:[^"\\\n]|\\.)*)"[^\n]*$', re.MULTILINE)
_NOT_CODE = re.compile(
    r"""R"(?P<mark>[^()\\\s]{0,16})\((?:.|\n){0,9999}?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""",
)
_COMMENT = re.compile(r"//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|" + _NOT_CODE.pattern, re.DOTALL)
_DYNAMIC = re.compile(
    r"\b(?=[^;(){}=]{0,200}\bextern\b)(?=[^;(){}=]{0,200}\b__shared__\b)"
    r"((?:[\w:<>,]+(?:\s*\*\s*|\s+)|__attribute__\s*\(\([^;{}=]{0,400}?\)\)\s*)+?)(\w+)\s*\[\s*\]((?:\s*\[[^\[\];{}]*\])*)\s*;"
)
_ATTRIBUTE = re.compile(
    r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)|\balignas\s*\([^()]*(?:\([^()]*\)[^()]*)*\)"
)
_LENGTH = re.compile(r"\[[^\[\]{};]*\]")
_VARIABLE = re.compile(r"\b(__device__|__constant__|__managed__)\b(?=([^;(){}=]{0,300}?)(;|=|\{|\())")
_QUALIFIER = re.compile(
    r"\b(?:__(?:global|device|host|constant|managed|shared|noinline|forceinline|grid_constant|inline_hint)__"
    r"|(__launch_bounds__|__cluster_dims__|__maxnreg__|__block_size__)\s*(?=\())"
)
_WORDS = {"__shared__": "static", "__forceinline__": "inline"}
_SECTION = '__attribute__((section("emulator_{}")))'  # hooks.hpp knows their names
_UNSEEN = '__attribute__((no_sanitize("thread"), noinline))'
_CALLEE = re.compile(r"(?:(?<![\w>])::\s*)?\b(?!(?:else|do|return)\b)[A-Za-z_]\w*(?:\s*::\s*\w+)*\s*\Z")
_KERNEL = re.compile(
    r"\b__global__\b(?:[^;{}()]|\([^;{}()]*(?:\([^;{}()]*\)[^;{}()]*)*\)(?=[^;{}()]*\())*?"
    r"\b(?!__launch_bounds__)(\w+)\s*\("
)
_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\s*(?:volatile|__volatile__|__volatile)?\s*(?=\()")
_LAUNCH = re.compile(r"<<[ \t]*<(?!<)")
_KERNEL_CAST = re.compile(  # kernels keep their types: host_api.h and graphs.h have templates for them
    r"(?:\b(?:cudaLaunch(?:Cooperative)?Kernel\s*\(|cudaFunc\w+\s*\((?:\s*&\s*\w+\s*,)?)|(?:\.|->)\s*func\s*=)\s*"
    r"(\(\s*(?:const\s+)?void\s*\*\s*\)|(?:reinterpret|static)_cast\s*<\s*(?:const\s+)?void\s*\*\s*>)"
)
_LAUNCH_END = re.compile(r">>[ \t]*>(?!>)")


class SourceError(Exception):
    """A file cannot be rewritten. `line` counts from 1, and `message` gives the reason."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(file, line, message)
        self.file, self.line, self.message = file, line, message


@dataclass(frozen=True)
class Preprocessed:
    """The output of a preprocessor: its text from the learner's first line on, and the same text in which everything
    but the learner's code is blanked out.

    `head` is what comes before, which is headers. `files` are the learner's files, with the path that the preprocessor used.
    """

    head: str
    text: str
    code: str
    files: frozenset[str]

    def find_line(self, place: int) -> tuple[str, int]:
        """Return the file and the line of a place in the text."""
        markers = list(_MARKER.finditer(self.text, 0, place))
        if not markers:
            return "", 1
        marker = markers[-1]
        return marker[2], int(marker[1]) + self.text.count("\n", marker.end() + 1, place)


def read_source(path: Path) -> str:
    """Return the text of a .cu file without a byte order mark, line ends as "\\n". Raises SourceError if it is not text."""
    data = path.read_bytes()
    if len(data) > MAX_FILE_BYTES:
        words = f"the file has {len(data) >> 10} KB, but may have at most {MAX_FILE_BYTES >> 10}"
        raise SourceError(path.name, 1, words)
    text = data.decode("utf-8-sig", errors="surrogateescape")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise SourceError(path.name, line, "this is not text: save the file again as UTF-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def blank_out(text: str) -> str:
    """Return the text with comments and strings replaced by spaces of the same length."""
    return _COMMENT.sub(lambda match: _blank(match[0]), text)


def read_preprocessed(text: str, other_folders: Sequence[str]) -> Preprocessed:
    """Return the output of the preprocessor, divided by its line markers. `other_folders` have files that are not the
    learner's: those of the compiler and of the emulator.
    """
    markers = list(_MARKER.finditer(text))
    ends = [*(marker.start() for marker in markers[1:]), len(text)]
    pieces = [
        (marker, text[marker.end() : end], not marker[2].startswith(("<", *other_folders)))
        for marker, end in zip(markers, ends, strict=True)
    ]
    first = next((number for number, (_, piece, is_learners) in enumerate(pieces) if is_learners and piece.strip()), 0)
    start = markers[first].start()
    code = "".join(
        _blank(marker[0]) + (piece if is_learners else _blank(piece)) for marker, piece, is_learners in pieces[first:]
    )
    files = frozenset(marker[2] for marker, _, is_learners in pieces if is_learners)
    return Preprocessed(text[:start], text[start:], _NOT_CODE.sub(lambda match: _blank(match[0]), code), files)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def rewrite(source: Preprocessed) -> str:
    """Return the text in a form that g++ can compile with the emulator's headers.

    Raises SourceError for features that the emulator does not have.
    """
    text, code = source.text, source.code
    edits = [*_find_launches(source), *_find_dynamic(text, code), *_find_shared_outside(code)]
    edits += [*_find_ptx(source), *_find_variables(source), *_find_qualifiers(code)]
    edits += [(*match.span(1), "") for match in _KERNEL_CAST.finditer(code)]
    pieces, position = [], 0
    for start, end, new in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if start >= position:  # of two that overlap, the larger one, or the first of two for the same word
            pieces += [text[position:start], new]
            position = end
    return "".join([source.head, *pieces, text[position:]])


def list_kernels(source: Preprocessed) -> dict[str, int]:
    """Return the place of each kernel of the learner in the text, by the kernel's name."""
    return {match[1]: match.start() for match in _KERNEL.finditer(source.code)}


def _find_qualifiers(code: str) -> Iterator[Edit]:
    """Yield edits that remove qualifiers that g++ does not know, or express them in C++."""
    for match in _QUALIFIER.finditer(code):
        if match[1]:
            end = _skip(code, match.end())
            yield match.start(), end, "\n" * code.count("\n", match.start(), end)
        elif not code.endswith("((", 0, match.start()):  # __attribute__((__noinline__)) is for g++
            before = code[max(0, match.start() - 20) : match.start()]
            word = "" if re.compile(r"\s+alignas\b").match(code, match.end()) else _WORDS.get(match[0], "")
            yield *match.span(), "" if word == "static" and re.search(r"\bstatic\s+\Z", before) else word
    for match in re.finditer(r"\b__shared__(?=\s+alignas\s*(\())", code):  # C++ has alignas first
        end = _skip(code, match.start(1))
        yield end, end, " static"
    for match in re.finditer(r"\b__shared__(\s+)static\b", code):
        yield *match.span(), f"static{match[1]}"


def _find_dynamic(text: str, code: str) -> Iterator[Edit]:
    """Yield edits that turn `extern __shared__ T name[];` into an alias of the emulator's memory."""
    for match in _DYNAMIC.finditer(code):
        words = _ATTRIBUTE.sub(" ", match[1]).split()
        kind = " ".join(word for word in words if word not in ("extern", "__shared__", "static"))
        array = f"[]{match[3]}"
        new = f"{kind} (&{match[2]}){array} = reinterpret_cast<{kind} (&){array}>(emulator_dynamic_memory);"
        yield *match.span(), new + _keep_lines(text[match.start() : match.end()])


def _keep_lines(text: str) -> str:
    """Return the line ends to put after the replacement of a text, so that the next line keeps its number."""
    marker = next(reversed(list(_MARKER.finditer(text))), None)  # of a macro, such as __align__
    return f"\n{marker[0]}" + "\n" * text.count("\n", marker.end()) if marker else "\n" * text.count("\n")


def _find_variables(source: Preprocessed) -> Iterator[Edit]:
    """Yield edits that put the variables of the device into sections of their own. A name before a bracket is a function."""
    code = _ATTRIBUTE.sub(lambda match: _blank(match[0]), source.code)
    code = _LENGTH.sub(lambda match: _blank(match[0]), code)
    for match in _VARIABLE.finditer(code):
        declaration, end = match[2], match[3]
        if end == "(" or (end == "{" and re.search(r"\b(struct|class|union|enum|namespace)\b", declaration)):
            continue
        if re.search(r"\boperator\b", declaration):
            continue
        first = max(code.rfind(mark, 0, match.start()) for mark in ";{}")
        if re.search(r"__(?:device|constant)__", code[first + 1 : match.start()]):  # the first of the two words has the section
            continue
        is_constant = re.search(r"\bconst\b(?![^*]*\*)|\bconstexpr\b", code[first + 1 : match.start()] + declaration)
        section = "constants" if is_constant else "uploaded" if "__constant__" in match[1] + declaration else "variables"
        yield *match.span(1), _SECTION.format(section)
        for inline in re.finditer(r"\binline\b", code[first + 1 : match.end() + len(declaration)]):  # in a section of its own
            yield first + 1 + inline.start(), first + 1 + inline.end(), ""


def _find_shared_outside(code: str) -> Iterator[Edit]:
    """Yield edits that give __shared__ variables outside of functions a symbol by which variables.hpp recognises them."""
    is_function: list[bool] = []  # for each open brace
    for match in re.finditer(r"[{}]|\b__shared__\b(?=([^;{}]*);)", code):
        if match[0] == "{":
            before = code[max(0, match.start() - 200) : match.start()]
            is_function.append(not re.search(r"\b(?:namespace\b[\w:\s]*|extern\s*)\Z", before))
        elif match[0] == "}":
            del is_function[-1:]
        elif not any(is_function) and "extern" not in code[max(0, match.start() - 20) : match.end()] + match[1]:
            for variable in re.finditer(r"(\w+)\s*((?:\[[^\]]*\]\s*)*)(?=[,;]|\Z)", match[1]):
                end = match.start(1) + variable.end()
                yield end, end, f' __asm__("_ZZ{len(str(end)) + 6}shared{end}vE{len(variable[1])}{variable[1]}")'


def _find_ptx(source: Preprocessed) -> Iterator[Edit]:
    """Yield edits that translate inline PTX. Its instructions end with ";": a statement without one is left to g++."""
    text, code = source.text, source.code
    for match in _ASM.finditer(code):
        end = _skip(code, match.end())
        sections = _split_asm(text, code, match.end(), end)
        strings = re.findall(r'"((?:\\.|[^"\\])*)"', sections[0][0])
        template = "".join(strings).replace("\\n", "\n").replace("\\t", " ").replace("\\r", " ")
        if ";" not in template:
            continue
        operands = ",".join(operand for section in sections[1:3] for operand in section)
        expressions = [re.sub(r"\s+", " ", expression) for expression in _list_expressions(operands)]
        try:
            new = f"do {{ {translate(template, expressions)} }} while (0)"
        except UnknownPtx as error:
            message = f"the emulator does not have the PTX {error}: {name_remedy(str(error))}"
            raise SourceError(*source.find_line(match.start()), message) from None
        yield match.start(), end, new + "\n" * text.count("\n", match.start(), end)


def _list_expressions(operands: str) -> Iterator[str]:
    """Yield the expressions of operands such as "=r"(x), "r"(y). As nvcc does, take them without a comma between them."""
    place = 0
    while match := re.compile(r'"[^"]*"\s*(?=\()').search(operands, place):
        place = _skip(operands, match.end())
        yield operands[match.end() + 1 : place - 1]


def _split_asm(text: str, code: str, start: int, end: int) -> list[list[str]]:
    """Return the template, outputs, inputs and clobbers of an asm statement, each as the parts that commas separate."""
    sections: list[list[str]] = [[]]
    first, depth = start + 1, 0
    for place in range(start, end):
        depth += (code[place] in OPENS) - (code[place] in CLOSES)
        if depth == 0 or (depth == 1 and code[place] in ",:"):
            sections[-1].append(text[first:place])
            first = place + 1
            if code[place] == ":":
                sections.append([])
    return sections


def _find_launches(source: Preprocessed) -> Iterator[Edit]:
    """Yield edits that turn `kernel<T><<<grid, block>>>` into a call of `emulator::launch` with "kernel<T>", a call of it, a
    search for it, the grid and the block; the kernel's arguments follow."""
    text, code = source.text, source.code
    for match in _LAUNCH.finditer(code):
        callee = _find_callee(code, match.start())
        end = _find_end(code, match.end())
        if callee is None or end is None:
            continue
        kernel, configuration = text[callee : match.start()], text[match.end() : end[0]]
        name = re.sub(r"\s+", " ", code[callee : match.start()]).strip().replace('"', "")
        call = f"[=](auto&... given) {_UNSEEN} {{ {kernel.rstrip()}(given...); }}"
        search = f"find({' '.join(kernel.split())})"
        find = f"[=](auto find) -> decltype({search}) {{ return {search}; }}"
        gap = "\n" * (kernel[len(kernel.rstrip()) :].count("\n"))
        yield callee, end[1], f'emulator::launch("{name}", {call}{gap}, {find}, {configuration})'
        for brace in re.finditer(r"(?<=[(,])\s*\{", code[end[1] : _skip(code, end[1])]):
            if _is_argument(code[end[1] : end[1] + brace.start()]):
                place = end[1] + brace.end() - 1
                message = "the emulator does not have an argument in braces without its type: write the type before them"
                raise SourceError(*source.find_line(place), message)
        yield from _find_zeros(code, end[1], code[callee : match.start()].rstrip())


def _find_zeros(code: str, first: int, kernel: str) -> Iterator[Edit]:
    """Yield edits that make a literal 0 or NULL among the arguments of a launch, which begin at `first`, a pointer.

    In a template whose types follow from its arguments, 0 stays a number.
    """
    name = re.search(r"\w*\Z", kernel)[0]  # type: ignore[index]
    is_deduced = name and re.search(rf"\btemplate\s*<[^;{{}}]*\b{name}\s*\(", code)
    for zero in re.finditer(r"(?<=[(,])\s*(__null|0)\s*(?=[,)])", code[first : _skip(code, first)]):
        before = code[first : first + zero.start()]
        if zero[1] == "__null" or (_is_argument(before) and not is_deduced):
            new = "nullptr" if zero[1] == "__null" else "emulator::Zero()"
            yield first + zero.start(1), first + zero.end(1), new


def _is_argument(before: str) -> bool:
    """Return whether an argument of a call comes after this text, which begins with the call's bracket."""
    return sum((letter in OPENS) - (letter in CLOSES) for letter in before) == 1


def _find_callee(code: str, end: int) -> int | None:
    """Return where the callee of the launch at `end` begins, or None if there is none.

    A callee is `name`, `space::name<8>`, `names[i]` or `(*name)`.
    """
    place = len(code[max(0, end - MAX_NAME) : end].rstrip()) + max(0, end - MAX_NAME)
    if code.endswith(">", 0, place):
        place = len(code[: _skip_back(code, place, "<", ">")].rstrip())
    brackets = place
    while code.endswith((")", "]"), 0, brackets):
        closing = code[brackets - 1]
        brackets = len(code[: _skip_back(code, brackets, OPENS[CLOSES.index(closing)], closing)].rstrip())
    first = max(0, brackets - MAX_NAME)
    match = _CALLEE.search(code[first:brackets])
    if match:
        return first + match.start()
    return brackets if brackets < place else None


def _skip(code: str, place: int) -> int:
    """Return the end of the bracket that opens at `place`."""
    depth = 0
    for end in range(place, len(code)):
        depth += (code[end] in OPENS) - (code[end] in CLOSES)
        if depth == 0:
            return end + 1
    return len(code)


def _skip_back(code: str, place: int, opening: str, closing: str) -> int:
    """Return the beginning of the bracket that closes before `place`. Angle brackets count only outside round brackets."""
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


def _find_end(code: str, place: int) -> tuple[int, int] | None:
    """Return where a launch's `>>>` begins and ends, outside all brackets, or None if there is none."""
    depth = 0
    last = min(len(code), place + MAX_NAME)
    while place < last and not _LAUNCH.match(code, place):
        if depth == 0 and (match := _LAUNCH_END.match(code, place)):
            return match.span()
        depth += (code[place] in OPENS) - (code[place] in CLOSES)
        if depth < 0 or (code[place] == ";" and depth == 0):
            return None
        place += 1
    return None
