"""Judge my_pages.py of 8.2 by tags: it writes (request, place) into slots, as an engine writes keys, and reads them again.

The part may choose any free page for a request. After every operation each request must read its own tags, then free pages and
copies are compared with those of another allocator. A wrong part gets the name of a mistake if the solution with this
mistake first differs at the same places in every script.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from types import ModuleType
from typing import Any

from gpucourse.judge import Part, Verdict, Way, plant_ways

WAYS = {
    "written-into-shared": Way(
        "after {op}, token {place} of {name} reads as token {other_place} of {other}: both use the page, and both write into "
        "it. A request that writes into a page with several users needs a copy first",
        ("shared = length % self.size != 0 and self.users[table[-1]] > 1", "shared = False"),
    ),
    "always-copies": Way(
        "{op} asks for copies ({copies} instead of {right_copies}): a page with a single user is never copied",
        ("and self.users[table[-1]] > 1", "and True"),
    ),
    "copies-full-page": Way(
        "{op} asks for copies ({copies} instead of {right_copies}): the last page is full, so no new token is written into "
        "it, and it stays shared",
        (
            "shared = length % self.size != 0 and self.users[table[-1]] > 1",
            "shared = bool(table) and self.users[table[-1]] > 1",
        ),
    ),
    "old-not-released": Way(
        "{op} asks for copies ({copies} instead of {right_copies}): the other user of that page got a copy earlier, and has "
        "not used the original since then",
        ("            self.users[old] -= 1\n", ""),
    ),
    "same-table": Way(
        "after {op}, token {place} of {name} reads as token {other_place} of {other}: the child has the parent's list itself,"
        " so each page that one appends is in the table of the other as well",
        ("list(self.tables[parent])", "self.tables[parent]"),
    ),
    "fork-not-counted": Way(
        "after {op}, token {place} of {name} reads as token {other_place} of {other}: since the fork their pages have two "
        "users, but you count one",
        ("        for page in self.tables[child]:\n            self.users[page] += 1\n", ""),
    ),
    "freed-while-used": Way(
        "after {op}, {free} pages are free, but only {right_free} should be: another request still uses some of those pages",
        (
            "            if self.users[page] == 0:\n                self.empty.append(page)",
            "            self.empty.append(page)",
        ),
    ),
    "never-freed": Way(
        "after {op}, {free} pages are free, but {right_free} should be: a page without a user is free again",
        ("                self.empty.append(page)", "                pass"),
    ),
    "one-too-many": Way(
        "after {op}, {free} pages are free, but {right_free} should be: tokens that fill their pages exactly need no other "
        "page yet",
        ("-(-(length + tokens) // self.size)", "((length + tokens) // self.size + 1)"),
    ),
    "one-too-few": Way(
        "{op} adds no page for some of its tokens ({error}): the last page is needed even if it is only partly filled. Round "
        "up",
        ("-(-(length + tokens) // self.size)", "max(1, (length + tokens) // self.size)"),
    ),
    "by-new-tokens": Way(
        "after {op}, {free} pages are free, but {right_free} should be: the last page of the request has places left. "
        "Count the pages of its whole length, minus those that it has",
        ("-(-(length + tokens) // self.size) - len(table)", "-(-tokens // self.size)"),
    ),
    "not-atomic": Way(
        "{op} was refused, and {free} pages are free instead of {right_free}: a refused call must leave everything as it was",
        (
            "        if missing + shared > len(self.empty):\n            raise NoRoom\n",
            "        if missing + shared > len(self.empty):\n"
            "            self.tables[name] = table + [self._take() for _ in range(len(self.empty))]\n"
            "            raise NoRoom\n",
        ),
    ),
    "copy-not-counted": Way(
        "{op} ends with {error}, with these free pages: {before}. The copy needs a page as well",
        ("if missing + shared > len", "if missing > len"),
    ),
    "one-kept-back": Way(
        "{op} is refused, although exactly enough pages are free ({before})",
        ("if missing + shared > len(self.empty)", "if missing + shared >= len(self.empty)"),
    ),
    "slot-by-place": Way(
        "after {op}, {name} has the slots {slots}: within its page, a token is at place % size",
        ("* self.size + place % self.size", "* self.size + place"),
    ),
    "newest-first": Way(
        "after {op}, token {place} of {name} reads as {content}: a table is in the order of the text, and new pages go to its "
        "end",
        ("table += [self._take() for _ in range(missing)]", "table[:0] = [self._take() for _ in range(missing)]"),
    ),
}

Operation = tuple[Any, ...]


@dataclass(frozen=True)
class Script:
    """Operations on a cache of `count` pages of `size` tokens."""

    count: int
    size: int
    operations: Sequence[Operation]


def _parse(text: str) -> list[Operation]:
    """Read `a+4` as extend("a", 4), `a>b` as fork("a", "b") and `-a` as free("a")."""
    operations: list[Operation] = []
    for word in text.split():
        if ">" in word:
            operations.append(("fork", *word.split(">")))
        elif word.startswith("-"):
            operations.append(("free", word[1:]))
        else:
            name, tokens = word.split("+")
            operations.append(("extend", name, int(tokens)))
    return operations


SCRIPTS = {
    "two requests": Script(8, 4, _parse("a+4 a+1 b+8 -a -b")),
    "small pieces": Script(8, 4, _parse("a+1 a+1 a+3 b+2 a+6 -b -a")),
    "a fork in the middle of a page": Script(8, 4, _parse("a+6 a>b a+1 b+1 a+3 b+3 -a b+1 -b")),
    "a fork at the end of a page": Script(8, 4, _parse("a+8 a>b a+1 b+1 -a -b")),
    "three answers": Script(12, 4, _parse("a+5 a>b a>c b+1 c+1 a+1 -b d+8 -a -c -d")),
    "the parent ends first": Script(8, 4, _parse("a+6 a>b -a c+12 b+3 -b -c")),
    "a full cache": Script(4, 4, _parse("a+9 b+5 b+4 -a b+8 -b")),
    "a full cache and a copy": Script(4, 4, _parse("a+10 a>b b+5 b+2 a+1 -b -a")),
    "pages of one token": Script(6, 1, _parse("a+2 a>b a+1 b+2 -a c+1 -b -c")),
}


@dataclass
class Counts:
    """A reference allocator without slots. It computes how many copies and pages each operation needs."""

    count: int
    size: int
    tables: dict[str, list[object]] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)

    def count_free(self) -> int:
        """Return how many pages are free."""
        return self.count - len({id(page) for table in self.tables.values() for page in table})

    def extend(self, name: str, tokens: int) -> int | None:
        """Add tokens to a request. Return how many pages have to be copied, or None if too few pages are free."""
        table, length = self.tables.get(name, []), self.lengths.get(name, 0)
        copies = 0
        if length % self.size:
            copies = int(sum(table[-1] in pages for pages in self.tables.values()) > 1)
        new = (length + tokens + self.size - 1) // self.size - len(table) + copies
        if new > self.count_free():
            return None
        kept = table[:-1] if copies else table
        self.tables[name] = kept + [object() for _ in range(new)]
        self.lengths[name] = length + tokens
        return copies

    def fork(self, parent: str, child: str) -> None:
        """Share the parent's pages."""
        self.tables[child], self.lengths[child] = list(self.tables[parent]), self.lengths[parent]

    def free(self, name: str) -> None:
        """End the request."""
        del self.tables[name], self.lengths[name]


def make_random_script(seed: int) -> Script:
    """Return 100 operations on 24 pages; what is refused by `Counts` changes nothing."""
    source, counts, operations = random.Random(seed), Counts(24, 4), list[Operation]()
    for number in range(100):
        choice, names = source.random(), list(counts.tables)
        if choice < 0.55 or not names:
            name = source.choice(names) if names and source.random() < 0.7 else f"r{number}"
            operation: Operation = ("extend", name, source.randint(1, 11))
        elif choice < 0.75:
            operation = ("fork", source.choice(names), f"r{number}")
        else:
            operation = ("free", source.choice(names))
        operations.append(operation)
        getattr(counts, operation[0])(*operation[1:])
    return Script(24, 4, operations)


ALL = SCRIPTS | {f"100 operations, draw {seed}": make_random_script(seed) for seed in range(6)}


@dataclass
class Difference:
    """The first difference in a script: its kind, its features for a comparison, values for the texts, and any error.

    A difference of contents (an error, another's text) is more urgent than one of counts.
    """

    kind: str
    signature: tuple[Any, ...]
    values: Mapping[str, object]
    error: BaseException | None = None


class _Run:
    """Run one script, with tags in the slots."""

    def __init__(self, module: ModuleType, script: Script) -> None:
        self.no_room = getattr(module, "NoRoom", None)
        self.script, self.pages = script, module.Pages(script.count, script.size)
        self.counts = Counts(script.count, script.size)
        self.memory: list[tuple[str, int] | None] = [None] * (script.count * script.size)
        self.texts: dict[str, list[tuple[str, int]]] = {}
        self.contents: Difference | None = None
        self.first_count: Difference | None = None

    def follow(self) -> tuple[Difference | None, Difference | None]:
        """Return the first difference of contents, after which the script ends, and the first of counts."""
        for number, operation in enumerate(self.script.operations):
            values = {"op": f"{operation[0]}({', '.join(map(repr, operation[1:]))})", "before": self.counts.count_free()}
            if not self._do(number, operation, values) or not self._read(number, values):
                break
        return self.contents, self.first_count

    def _differ(
        self, kind: str, number: int, details: tuple[Any, ...], values: Mapping[str, object], error: Any = None
    ) -> bool:
        self.contents = Difference(kind, (number, kind, *details), values, error)
        return False

    def _do(self, number: int, operation: Operation, values: dict[str, object]) -> bool:
        kind, *arguments = operation
        expected = getattr(self.counts, kind)(*arguments)
        refused, result = False, None
        try:
            result = getattr(self.pages, kind)(*arguments)
        except BaseException as error:  # noqa: BLE001  # the part may raise anything
            refused = self.no_room is not None and isinstance(error, self.no_room)
            if not refused:
                return self._differ("error", number, (type(error).__name__,), values | {"error": _describe(error)}, error)
        if kind == "extend" and refused != (expected is None):
            kind = "refused" if refused else "accepted"
            return self._differ(kind, number, (), values | {"error": "no error"})
        if kind == "extend" and not refused and not self._write(number, arguments, result, expected, values):
            return False
        if kind == "fork":
            self.texts[arguments[1]] = list(self.texts[arguments[0]])
        if kind == "free":
            del self.texts[arguments[0]]
        return self._count(number, refused, values)

    def _write(self, number: int, arguments: Sequence[Any], copies: Any, expected: int, values: dict[str, object]) -> bool:
        (name, tokens), size, slots_in_all = arguments, self.script.size, len(self.memory)
        pairs = [_read_numbers(pair) for pair in copies] if isinstance(copies, (list, tuple)) else [None]
        if not all(pair and len(pair) == 2 and all(0 <= page < self.script.count for page in pair) for pair in pairs):
            return self._differ("copies-type", number, (), values | {"content": repr(copies)[:80]})
        for source, target in filter(None, pairs):
            self.memory[target * size : (target + 1) * size] = self.memory[source * size : (source + 1) * size]
        text = self.texts.setdefault(name, [])
        try:
            result = self.pages.slots(name, len(text), len(text) + tokens)
        except BaseException as error:  # noqa: BLE001
            values |= {"error": f"slots: {_describe(error)}"}
            return self._differ("slots-error", number, (type(error).__name__,), values, error)
        slots = _read_numbers(result)
        shown = values | {
            "name": name,
            "slots": repr(result)[:80],
            "content": f"slots {repr(result)[:80]}",
            "error": "too few slots",
        }
        if slots is None or len(slots) != tokens:
            return self._differ("slots-type", number, (), shown)
        if len(set(slots)) != tokens or not all(0 <= slot < slots_in_all for slot in slots):
            return self._differ("slots-outside", number, (), shown)
        for slot in slots:
            self.memory[slot] = (name, len(text))
            text.append((name, len(text)))
        if len(copies) != expected and self.first_count is None:
            shown = values | {"copies": len(copies), "right_copies": expected}
            self.first_count = Difference("copies", (number, "copies", len(copies)), shown)
        return True

    def _count(self, number: int, refused: bool, values: Mapping[str, object]) -> bool:
        try:
            free: object = self.pages.count_free()
        except BaseException as error:  # noqa: BLE001
            return self._differ("error", number, (type(error).__name__,), values, error)
        free = free if (numbers := _read_numbers([free])) is None else numbers[0]
        right = self.counts.count_free()
        if free != right and self.first_count is None:
            values = {**values, "free": free, "right_free": right}
            self.first_count = Difference("refused-free" if refused else "free", (number, "free", refused, repr(free)), values)
        return True

    def _read(self, number: int, values: dict[str, object]) -> bool:
        for name, text in self.texts.items():
            try:
                slots = _read_numbers(self.pages.slots(name, 0, len(text))) or []
                tags = [self.memory[slot] for slot in slots]
            except BaseException as error:  # noqa: BLE001
                return self._differ("error", number, (type(error).__name__,), values, error)
            for place, tag in enumerate(text):
                content = tags[place] if place < len(tags) else None
                if content != tag:
                    other, other_place = content or ("none", 0)
                    words = f"token {other_place} of {other}" if content else "nothing"
                    values |= {"name": name, "place": place, "content": words, "other": other, "other_place": other_place}
                    return self._differ("contents", number, (name, place, content), values | {"slots": repr(slots)[:80]})
        return True


def _read_numbers(numbers: Any) -> list[int] | None:
    """Return whole numbers, of Python or of a library, as a list. Return None if it is not a sequence of them."""
    try:
        numbers = numbers.tolist() if hasattr(numbers, "tolist") else numbers
        return [operator.index(number) for number in numbers] if isinstance(numbers, (list, tuple)) else None
    except TypeError:
        return None


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:100]


Findings = dict[str, tuple[Any, Any]]


def _examine(run: Callable[[str, Script], tuple[Difference | None, Difference | None]]) -> Findings:
    return {name: run(name, script) for name, script in ALL.items()}


def _sign(findings: Findings) -> dict[str, Any]:
    """Return the signatures of the findings in SCRIPTS, whose differences do not depend on which free page is taken."""
    return {
        name: [difference and difference.signature for difference in findings[name]] for name in SCRIPTS if name in findings
    }


def judge(part: Part) -> None:
    """Judge all scripts: contents first, then counts."""
    pages = part.function("Pages")
    part.call(pages, 4, 4, case="Pages(4, 4)")  # open, or an error at once

    def follow(_name: str, script: Script) -> tuple[Difference | None, Difference | None]:
        return part.call(_Run, part.module, script).follow()  # type: ignore[no-any-return]

    findings = _examine(follow)
    if differences := _sort(findings):
        raise _name_cause(part, findings, differences)
    operations = sum(len(script.operations) for script in ALL.values())
    part.note(f"{operations} operations in {len(ALL)} scripts: every request reads its own text")
    part.note("no page is lost, and no copy is unnecessary")


def _sort(findings: Findings) -> list[tuple[str, Difference]]:
    """Return all differences with their scripts: another request's text first, then counts, then possible consequences."""
    rows = [(name, difference) for differences in zip(*findings.values(), strict=True)
            for name, difference in zip(findings, differences, strict=True) if difference]  # fmt: skip
    counts = "copies", "free", "refused-free"
    return sorted(rows, key=lambda row: 2 if row[1].kind in ("refused", "accepted") else row[1].kind in counts)


def _name_cause(part: Part, findings: Findings, differences: Sequence[tuple[str, Difference]]) -> Verdict:
    (name, difference), signature = differences[0], _sign(findings)
    case = f"{name}: {difference.values['op']}"
    if isinstance(difference.error, NotImplementedError):
        return part.make_verdict(difference.error, case)
    for way, module in plant_ways(WAYS, __file__):
        changed = _examine(lambda _name, script, module=module: _Run(module, script).follow())
        if _sign(changed) == signature:
            fields = {word for _, word, _, _ in Formatter().parse(WAYS[way].says) if word}
            shown = next((row for row in differences if fields <= row[1].values.keys()), differences[0])
            return part.wrong(way, f"{shown[0]}: {shown[1].values['op']}", **shown[1].values)
    if difference.error is not None:
        return part.make_verdict(difference.error, case)
    return Verdict("failed", "other", TEXTS[difference.kind].format(**difference.values), case)


TEXTS = {
    "refused": "{op} is refused, although there is room: {before} pages are free before it",
    "accepted": "{op} is accepted, although there is no room: only {before} pages are free before it",
    "copies-type": "{op} returned {content}, not a list of pairs of pages (from, to)",
    "slots-type": "after {op}, slots of the new tokens returns {slots}, not one number for each token",
    "slots-outside": "after {op}, slots of the new tokens returns {slots}: two are equal, or outside the cache",
    "contents": "after {op}, token {place} of {name} reads as {content}",
    "copies": "{op} asks for copies ({copies} instead of {right_copies})",
    "free": "after {op}, {free} pages are free, but {right_free} should be",
    "refused-free": "{op} was refused, and {free} pages are free instead of {right_free}",
}
