"""Judge my_prefix.py of 8.4: first the keys, then what requests find, compared with an allocator that compares whole texts."""

from __future__ import annotations

import numbers
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpucourse.judge import Part, Verdict, Way

SIZE = 4  # tokens of a page
WAYS = {
    "page-alone": Way(
        "the same {size} tokens have the same key wherever they are. Keys and values depend on all tokens before them: "
        "make each key from the key of the page before and the tokens of the page",
        ("parent = hashlib.sha256(parent + repr", "parent = hashlib.sha256(salt.encode() + repr"),
    ),
    "place-and-page": Way(
        "the same {size} tokens at the same place get the same page key, although the texts before them differ, and so do "
        "their attention keys and values",
        ("parent = hashlib.sha256(parent + repr", "parent = hashlib.sha256(f'{salt} {end}'.encode() + repr"),
    ),
    "salt-ignored": Way(
        "two tenants have the same keys for the same text: one tenant finds what the other has sent, and can learn from a "
        "shorter wait what others asked",
        ("parent = hashlib.sha256(salt.encode()).digest()", "parent = b''"),
    ),
    "key-too-short": Way(
        "{same:,} of {count:,} pages with different texts have the key of another page: a key of that size is too short",
        (".encode()).digest()\n        keys", ".encode()).digest()[:1]\n        keys"),
    ),
    "part-pages": Way(
        "{tokens} tokens are {whole} whole pages of {size}, and you returned {result} keys: the last page will change when it "
        "is filled, so it has no key yet",
        ("range(size, len(tokens) + 1, size)", "range(size, len(tokens) + size, size)"),
    ),
    "nothing-left": Way(
        "all {found} tokens of the prompt were found, and nothing remains to compute. The scores for the next token come from"
        " the last token, so at least this one must be computed",
        ("[: (len(tokens) - 1) // self.size]", ""),
        "{observation}",
    ),
    "one-page-less": Way(
        "{found} tokens were found, but {right} could be found: only the last token must be computed, not the last whole page",
        ("[: (len(tokens) - 1) // self.size]", "[: len(tokens) // self.size - 1]"),
        "{observation}",
    ),
    "gaps": Way(
        "a page was not found, and you continued the search: later pages are useless without it. Stop at the first page that "
        "is not found",
        ("                break\n", "                continue\n"),
        "{observation}",
    ),
    "found-before-computed": Way(
        "the second request found {found} tokens that the first has not computed yet: a page can be found after `computed`",
        (
            "        self.salts[name] = salt\n        return",
            "        self.salts[name] = salt\n        self.computed(name, tokens)\n        return",
        ),
        "{observation}",
    ),
    "key-stays": Way(
        "page {page} was taken for another text, but is still found by its old text: `take` must forget its key",
        ("            del self.page_of[key]\n", "            pass\n"),
        "{observation}",
    ),
    "hit-not-taken-off": Way(
        "{left} pages are free, but {right_left} should be: a page that is found is in use again, and must leave the queue",
        ("            self.free.pop(page, None)\n", ""),
        "{observation}",
    ),
    "hit-not-counted": Way(
        "after the second request ended, {left} pages are free, but {right_left} should be: you never counted it as a user "
        "of the pages that it found",
        ("            self.users[page] += 1\n        self.tables", "        self.tables"),
        "{observation}",
    ),
    "freed-while-used": Way(
        "{left} pages are free, but {right_left} should be: two requests used the same pages, one ended, and you freed the "
        "pages of the other",
        ("            if not self.users[page]:\n", "            if True:\n"),
        "{observation}",
    ),
    "hit-counts-as-room": Way(
        "a request found {hits} pages among {free} free ones and needs {others} more: a page that was found cannot hold other"
        " tokens as well, so start must return None",
        (" - sum(page in self.free for page in hits)", ""),
        "{observation}",
    ),
    "forgotten-at-end": Way(
        "{found} tokens were found, but {right} could be found: the pages of a request that has ended can be found until "
        "another text needs them",
        (
            "                self.free[page] = None",
            "                self.free[page] = None\n                self.page_of.pop(self.key_of[page], None)\n"
            "                self.key_of[page] = None",
        ),
        "{observation}",
    ),
    "beginning-first": Way(
        "{found} tokens were found, but {right} would be found if the last page of a request had joined the queue first: many "
        "requests share a beginning, few an end, and without its beginning no page is found",
        ("reversed(self.tables.pop(name))", "self.tables.pop(name)"),
        "{observation}",
    ),
    "newest-first": Way(
        "{found} tokens were found, but {right} would be with the right order: you gave up the pages that were freed last. The "
        "page at the front of the queue has waited longest",
        ("page = next(iter(self.free))", "page = next(reversed(self.free))"),
        "{observation}",
    ),
    "second-takes-the-key": Way(
        "{found} tokens were found, but {right} could be found: two requests had computed the same text, and when the pages of "
        "the second were taken for another text, those of the first could no longer be found. The key belongs to the page "
        "that had it first",
        ("if key not in self.page_of and self.key_of[page] is None:", "if self.key_of[page] is None:"),
        "{observation}",
    ),
    "answers-not-kept": Way(
        "{found} tokens were found, but {right} could be found: the next turn of a conversation begins with the answer, and "
        "its pages are computed as well",
        (
            "        for page, key in zip(",
            "        if any(self.key_of[page] for page in self.tables[name]):\n            return\n"
            "        for page, key in zip(",
        ),
        "{observation}",
    ),
}  # fmt: skip
METHODS = ("start", "take", "computed", "end", "grow", "count_free", "pages")
A, B, C, D = ([number * 10 + place for place in range(SIZE)] for number in (1, 2, 3, 4))
Operation = tuple[Any, ...]


class Reference:
    """The right allocator without keys: each page holds its whole text, and the time at which it became free."""

    def __init__(self, pages: int) -> None:
        self.texts: list[tuple[str, list[int]] | None] = [None] * pages
        self.users = [0] * pages
        self.freed_at = list(range(-pages, 0))
        self.tables: dict[str, list[int]] = {}
        self.salts: dict[str, str] = {}
        self.time = 0

    def start(self, name: str, tokens: list[int], salt: str = "") -> int | None:
        """Return the tokens that are found, or None if there is no room."""
        hits: list[int] = []
        while (len(hits) + 1) * SIZE < len(tokens):
            text = (salt, tokens[: (len(hits) + 1) * SIZE])
            if text not in self.texts:
                break
            hits.append(self.texts.index(text))
        count = -(-len(tokens) // SIZE) - len(hits)
        if count > sum(not users and page not in hits for page, users in enumerate(self.users)):
            return None
        for page in hits:
            self.users[page] += 1
        self.tables[name], self.salts[name] = hits, salt
        self._add(name, count)
        return (len(self.tables[name]) - count) * SIZE

    def _add(self, name: str, count: int) -> None:
        for _ in range(count):
            page = min((page for page, users in enumerate(self.users) if not users), key=lambda page: self.freed_at[page])
            self.texts[page], self.users[page] = None, 1
            self.tables[name].append(page)

    def grow(self, name: str, length: int) -> bool:
        """Add pages until the request has room for `length` tokens. Return False if too few pages are free."""
        count = -(-length // SIZE) - len(self.tables[name])
        if count > self.count_free():
            return False
        self._add(name, count)
        return True

    def computed(self, name: str, tokens: list[int]) -> None:
        """Record the texts of the whole pages, except those that another page already holds."""
        for number in range(len(tokens) // SIZE):
            page, text = self.tables[name][number], (self.salts[name], tokens[: (number + 1) * SIZE])
            if self.texts[page] is None and text not in self.texts:
                self.texts[page] = text

    def end(self, name: str) -> None:
        """Free the pages that have no other user, from the last to the first."""
        for page in reversed(self.tables.pop(name)):
            self.users[page] -= 1
            self.time += 1
            self.freed_at[page] = self.time

    def count_free(self) -> int:
        """Return the number of free pages."""
        return self.users.count(0)


@dataclass(frozen=True)
class Script:
    """The operations of requests in their order, and for each operation the mistake that a deviation suggests.

    `suspects`: the way by (the number of the operation, what deviates: "fewer" or "more" tokens found, "false" for a page with
    another text, "free" for more free pages, "lost" for fewer, "room" for a request that has no room).
    """

    name: str
    pages: int
    operations: Sequence[Operation]
    suspects: dict[tuple[int, str], str] = field(default_factory=dict)


def _start(name: str, tokens: list[int], salt: str = "") -> list[Operation]:
    """Return the operations of a request that is started and computed."""
    return [("start", name, tokens, salt), ("computed", name, tokens)]


def _whole(name: str, tokens: list[int]) -> list[Operation]:
    """Return the operations of a request from its start to its end."""
    return [*_start(name, tokens), ("end", name)]


NEW = [90]  # one more token, which every request computes
SCRIPTS = (
    Script("the same prompt twice", 8, [*_whole("a", A + B + NEW), *_whole("b", A + B + NEW), ("start", "c", A + B)],
           {(3, "none"): "forgotten-at-end", (3, "fewer"): "one-page-less", (3, "free"): "hit-not-taken-off",
            (5, "lost"): "hit-not-counted", (6, "more"): "nothing-left"}),
    Script("two requests at the same time", 8, [("start", "a", A + B + NEW), ("start", "b", A + B + NEW)],
           {(1, "more"): "found-before-computed", (1, "false"): "found-before-computed"}),
    Script("a page with two users", 8,
           [*_start("a", A + B + NEW), *_start("b", A + B + NEW), ("end", "a"), ("end", "b")],
           {(4, "free"): "freed-while-used"}),
    Script("no room beside the pages that are found", 4,
           [*_whole("a", A + B + NEW), ("start", "b", A + B + C + D + NEW)], {(3, "room"): "hit-counts-as-room"}),
    Script("pages for another text", 4, [*_whole("a", A + B + NEW), *_whole("x", C + D + A + B), ("start", "b", A + B + NEW)],
           {(6, "false"): "key-stays", (6, "more"): "key-stays"}),
    Script("the order of free pages", 6,
           [*_start("a", A + B + C + NEW), *_start("b", D + NEW), ("end", "a"), ("end", "b"), *_whole("x", C + D),
            ("start", "c", A + B + C + NEW)],
           {(9, "none"): "beginning-first", (9, "more"): "newest-first"}),
    Script("an answer, and the next turn", 8,
           [*_start("a", A + NEW), ("grow", "a", 12), ("computed", "a", A + NEW + B + C[:3]), ("end", "a"),
            ("start", "b", A + NEW + B + C[:3] + NEW)], {(5, "fewer"): "answers-not-kept"}),
    Script("the same text computed twice", 9,
           [("start", "a", A + B + NEW), ("start", "b", A + B + NEW), ("computed", "a", A + B + NEW),
            ("computed", "b", A + B + NEW), ("end", "b"), *_whole("x", C + D + C + D + C + D), ("start", "c", A + B + NEW)],
           {(8, "none"): "second-takes-the-key"}),
    Script("a beginning that was given away", 12,
           [("start", "a", A + B + C + NEW), ("start", "b", A + B + NEW), ("computed", "b", A + B + NEW),
            ("computed", "a", A + B + C + NEW), ("end", "b"), *_whole("x", 8 * D), ("start", "c", A + B + C + NEW)],
           {(8, "more"): "gaps", (8, "false"): "gaps"}),
    Script("two tenants", 8, [*_start("a", A + B + NEW, "red"), ("end", "a"), ("start", "b", A + B + NEW, "blue")],
           {(3, "more"): "salt-ignored", (3, "false"): "salt-ignored"}),
)  # fmt: skip


def judge(part: Part) -> None:
    """Judge the keys, ten short scripts, and long conversations in a small cache."""
    keys, make = Keys(part), part.function("PrefixCache")
    keys.judge_counts()
    keys.judge_places()
    keys.judge_many()
    scripts = [*SCRIPTS, *(_make_talks(seed, pages) for seed, pages in ((1, 40), (2, 30), (3, 26)))]
    for script in scripts:
        Play(part, make, script).judge()
    operations = sum(len(script.operations) for script in scripts)
    part.note(f"{operations} operations of {len(scripts)} scripts: found, free and shared pages are right after each")


class Keys:
    """The learner's page_keys, and which of its keys are equal."""

    def __init__(self, part: Part) -> None:
        self.part, self.page_keys = part, part.function("page_keys")

    def read(self, case: str, tokens: list[int], salt: str = "") -> list[Any]:
        """Return the keys of some tokens. Raise Verdict if their number is wrong, or if a dictionary cannot have such keys."""
        keys = self.part.call(self.page_keys, list(tokens), SIZE, salt, case=case)
        if not isinstance(keys, (list, tuple)):
            text = f"page_keys returned {type(keys).__name__}: return a list with one key for each whole page"
            raise Verdict("failed", "no-keys", text, case)
        whole = len(tokens) // SIZE
        if len(keys) == whole + 1 and len(tokens) % SIZE:
            raise self.part.wrong("part-pages", case, tokens=len(tokens), whole=whole, size=SIZE, result=len(keys))
        if len(keys) != whole:
            text = f"{len(tokens)} tokens are {whole} whole pages of {SIZE}, but there are {len(keys)} keys"
            raise Verdict("failed", "other", text, case)
        for key in keys:
            self.part.call(hash, key, case=case)
        return list(keys)

    def judge_counts(self) -> None:
        """Judge how many keys there are."""
        for count in (2 * SIZE + 1, 0, 1, SIZE, 3 * SIZE - 1):
            self.read("keys of a page", (A + B + C)[:count])

    def judge_places(self) -> None:
        """Judge keys of texts that share some of their pages."""
        case = "keys of texts that share pages"
        right = self.read(case, A + B)
        if right != self.read(case, A + B + NEW) or right != self.read(case, A + B + C)[:2]:
            raise Verdict("failed", "other", "the same text has other keys when it is longer, or when it comes again", case)
        if right[1] == self.read(case, B + A)[0]:
            raise self.part.wrong("page-alone", case, size=SIZE)
        if right[1] == self.read(case, C + B)[1]:
            raise self.part.wrong("place-and-page", case, size=SIZE)
        case = "keys of two tenants"
        if set(self.read(case, A + B, "red")) & set(self.read(case, A + B, "blue")):
            raise self.part.wrong("salt-ignored", case)

    def judge_many(self) -> None:
        """Check that different texts have different keys, even if their digits are the same."""
        case = "keys of many texts"
        texts = [([number % 100, number // 100, 1, 2], "") for number in range(5000)]
        keys = {self.read(case, tokens)[0] for tokens, _ in texts}
        if len(keys) < len(texts) // 2:
            raise self.part.wrong("key-too-short", case, same=len(texts) - len(keys), count=len(texts))
        texts += [([1, 23, 4, 5], ""), ([12, 3, 4, 5], ""), ([1, 2, 34, 5], ""), ([5, 4, 23, 1], ""), ([23, 4, 5, 1], ""),
                  ([2, 3, 4, 5], "1"), ([3, 4, 5, 6], "12"), ([13, 4, 5, 6], "2")]  # fmt: skip
        texts_of: dict[Any, tuple[list[int], str]] = {}
        for text in texts:
            other = texts_of.setdefault(self.read(case, *text)[0], text)
            if other != text:
                observation = f"{other[0]} with the salt '{other[1]}' and {text[0]} with the salt '{text[1]}' have the same key"
                raise Verdict("failed", "other", observation, case)


class Play:
    """The learner's cache while a script is played, together with the reference."""

    def __init__(self, part: Part, make: Callable[..., Any], script: Script) -> None:
        self.part, self.script, self.case = part, script, script.name
        self.cache, self.reference = part.call(make, script.pages, SIZE, case=script.name), Reference(script.pages)
        for method in METHODS:
            if not callable(getattr(self.cache, method, None)):
                raise Verdict("failed", "no-method", f"PrefixCache has no method {method}: keep its name", script.name)
        self.memory: list[tuple[str, list[int]] | None] = [None] * script.pages  # whose keys and values each page holds
        self.salts: dict[str, str] = {}
        self.log: list[Any] = []
        self.number, self.text, self.values = 0, "", {"free": 0, "hits": 0, "others": 0}

    def judge(self) -> None:
        """Play every operation, and compare what can be observed of it."""
        for number, (name, request, *arguments) in enumerate(self.script.operations):
            self.number = number
            tokens = arguments[0] if name in ("start", "computed") else []
            self.text = f"{name}({request}{f', {len(tokens)} tokens' if tokens else ''})"
            if name == "start":
                self._note_room(*arguments)
            right = getattr(self.reference, name)(request, *arguments)
            result = self._call(name, request, arguments, right)
            if name == "start" and right is not None:
                self._compare_found(request, result, right, *arguments)
            self._compare_free()
            if name == "computed":
                self._fill(request, tokens)
            if name in ("start", "grow"):
                self._compare_shared(request)

    def _note_room(self, tokens: list[int], salt: str = "") -> None:
        """Note how many pages are free before a start, how many pages the request finds, and how many others it needs."""
        hits = 0
        while (hits + 1) * SIZE < len(tokens) and (salt, tokens[: (hits + 1) * SIZE]) in self.reference.texts:
            hits += 1
        self.values = {"free": self.reference.count_free(), "hits": hits, "others": -(-len(tokens) // SIZE) - hits}

    def _fail(self, kind: str, observation: str, **values: Any) -> Verdict:
        """Return the verdict on a deviation: the way that it suggests in this script, or what was observed."""
        observation = f"operation {self.number + 1}, {self.text}: {observation}"
        if way := self.script.suspects.get((self.number, kind)):
            return self.part.wrong(
                way, self.case, output=[*self.log, kind, observation], observation=observation, **{**self.values, **values}
            )
        return Verdict("failed", "other", observation, self.case)

    def _call(self, name: str, request: str, arguments: Sequence[Any], right: Any) -> Any:
        """Return the result of an operation. Raise Verdict if it is wrong about whether there is room."""
        copies = [list(argument) if isinstance(argument, list) else argument for argument in arguments]
        try:
            result = self.part.call(getattr(self.cache, name), request, *copies, case=self.case)
        except Verdict as verdict:
            if verdict.way != "error" or name != "start" or right is not None:
                raise
            raise self._fail("room", f"there is no room, and it ended with {verdict.says}") from None
        is_wrong = (result is None) != (right is None) if name == "start" else name == "grow" and bool(result) != right
        if is_wrong:
            kind = "refused" if right else "room"
            raise self._fail(kind, f"it returned {result!r:.40}, but {right} is right, with {self.values['free']} free pages")
        self.log.append(result)
        return result

    def _read_table(self, request: str, tokens: list[int]) -> list[int]:
        """Return the table of a request. Raise Verdict if it is not a table, or too short for the tokens."""
        table, count = self.part.call(self.cache.pages, request, case=self.case), -(-len(tokens) // SIZE)
        is_table = isinstance(table, (list, tuple)) and all(
            isinstance(page, numbers.Integral) and 0 <= page < self.script.pages for page in table
        )
        if not is_table or len(table) < count or len(set(table)) != len(table):
            text = (
                f"after {self.text} the table of {request} is {table!r:.80}: {len(tokens)} tokens need {count} different pages"
            )
            raise Verdict("failed", "no-table", text, self.case)
        return list(table)

    def _compare_found(self, request: str, found: Any, right: int, tokens: list[int], salt: str = "") -> None:
        """Compare the number of found tokens with the right one, and the texts of the found pages with the request's text."""
        self.salts[request] = salt
        table = self._read_table(request, tokens)
        if type(found) is not int or found % SIZE:
            observation = f"it returned {found!r:.40}: return the number of tokens in the whole pages that were found"
            raise Verdict("failed", "no-number", observation, self.case)
        for number, page in enumerate(table[: found // SIZE]):
            held = self.memory[page]
            if held != (salt, tokens[: (number + 1) * SIZE]):
                content = "nothing yet" if held is None else "another text" if held[0] == salt else "a text of another tenant"
                observation = f"page {number} of the request is page {page} of the memory, which holds {content}"
                raise self._fail("false", observation, page=page, found=found, right=right)
        if found != right:
            kind = "more" if found > right else "fewer" if found else "none"
            raise self._fail(kind, f"{found} tokens were found, but {right} could be", page=0, found=found, right=right)

    def _compare_free(self) -> None:
        left, right = self.part.call(self.cache.count_free, case=self.case), self.reference.count_free()
        self.log.append(left)
        if left != right:
            observation = f"{left} pages are free, but {right} should be"
            raise self._fail("free" if left > right else "lost", observation, left=left, right_left=right)

    def _fill(self, request: str, tokens: list[int]) -> None:
        """Write the keys and values of a request into its pages."""
        for place, page in enumerate(self._read_table(request, tokens)[: -(-len(tokens) // SIZE)]):
            self.memory[page] = (self.salts[request], tokens[: (place + 1) * SIZE])

    def _compare_shared(self, request: str) -> None:
        """Raise the verdict if two running requests share a page that does not hold the text of both."""
        tables = self.reference.tables
        for other in tables.keys() - {request} if request in tables else ():
            shared = [set(self.part.call(self.cache.pages, name, case=self.case)) for name in (request, other)]
            count, right = len(shared[0] & shared[1]), len(set(tables[request]) & set(tables[other]))
            if count > right:
                raise self._fail("in-use", f"it has {count} pages of {other}, which still runs, and shares the text of {right}")


def _make_talks(seed: int, pages: int, turns: int = 24) -> Script:
    """Return a script of conversations of two tenants over two beginnings, several at a time, with growing answers."""
    chance = random.Random(seed)
    reference = Reference(pages)
    operations: list[Operation] = []
    running: list[tuple[str, int, list[int]]] = []
    heads = [[chance.randrange(100) for _ in range(length)] for length in (21, 14)]
    talks = [(("red", "blue")[number % 2], heads[number % 3 % 2]) for number in range(5)]
    for turn in range(turns):
        number = chance.randrange(len(talks))
        salt, text = talks[number]
        tokens, name = text + [chance.randrange(100) for _ in range(chance.randrange(1, 8))], f"q{turn}"
        operations.append(("start", name, tokens, salt))
        if reference.start(name, tokens, salt) is not None:
            running.append((name, number, tokens))
        while running and (len(running) > 2 or chance.random() < 0.6):
            name, number, tokens = running.pop(chance.randrange(len(running)))
            answer = [chance.randrange(100) for _ in range(chance.randrange(1, 10))]
            steps: list[Operation] = [("computed", name, tokens), ("grow", name, len(tokens) + len(answer))]
            reference.computed(name, tokens)
            if reference.grow(name, len(tokens) + len(answer)):
                steps.append(("computed", name, tokens + answer))
                reference.computed(name, tokens + answer)
                talks[number] = (talks[number][0], tokens + answer if len(tokens) < 60 else heads[number % 2])
            reference.end(name)
            operations += [*steps, ("end", name)]
    return Script(f"conversations of two tenants in {pages} pages", pages, operations)
