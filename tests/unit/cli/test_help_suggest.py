"""For a misspelt word, the intended word is suggested."""

from __future__ import annotations

import pytest

from tests.learning import Learning


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("stauts --watch", "there is no command 'stauts'. Did you mean status", "gpucourse status --watch"),
        ("help stauts", "there is no command 'stauts'. Did you mean status", "gpucourse status --help"),
        ("status --wacth", "there is no option --wacth. Did you mean --watch", "gpucourse status --help"),
        ("quiz --lesson", "there is no option --lesson. →", "gpucourse quiz --help"),
        ("run 1.1 --nodes", "--nodes needs a value →", "gpucourse run --help"),
        ("run 1.1 --detach=yes", "--detach accepts no value →", "gpucourse run --help"),
        ("status --qiet", "Did you mean --quiet?", "gpucourse status --help"),
        ("run 1.1 --launcher tochrun", "Did you mean torchrun?", "gpucourse run --help"),
        ("run 1.1 --gpu t5", "there is no GPU 't5'. Did you mean t4?", "known: t4"),
        ("break 1.1 --how kil-rank", "Did you mean kill-rank", "gpucourse break --help"),
        ("check 1.1 --diagnosis kil-rank", "Did you mean kill-rank", "faults that a drill injects: kill-rank"),
        ("resume 3", "Did you mean next?", "→ gpucourse next"),
        ("run 1.1 --depth 64 --detach", "--depth is a parameter", "gpucourse run 1.1 --set depth=64 --detach"),
        ("hint", "hint needs the number of an exercise: 3.2", "gpucourse hint --help"),
        ("run 1", "1 is a module", "gpucourse run 1 --all"),
        ("hint 1", "1 is a module", "its exercises: 1.1, 1.2"),
        ("show 1.3", "there is no exercise '1.3'. Did you mean", "known: 1.1, 1.2"),
        ("deploy 11", "there is no module '11'. Did you mean 1?", "known: 1"),
        ("logs 1.2", "1.2 has no run yet", "gpucourse run 1.2"),
        ("logs", "there are no runs yet", "gpucourse next"),
        ("logs 1.9", "there is no exercise '1.9'", "known: 1.1, 1.2"),
        ("compare 1.9", "there is no exercise '1.9'", "known: 1.1, 1.2"),
        ("runs 1.9", "there is no exercise '1.9'", "known: 1.1, 1.2"),
        ("deploy 1 --target mars", "'mars' is not one of", "gpucourse deploy --help"),
        ("trust", "trust needs a folder, --list or --remove DIR", "gpucourse trust --list"),
        ("dev", "dev needs one of: new, check, schema", "gpucourse dev --help"),
        ("next extra", "next accepts no argument, but 'extra' was typed →", "→ gpucourse next"),
        ("show 1.1 2 --part 2", "show accepts at most 1 argument, but '2'", "→ gpucourse show 1.1 --part 2"),
        ("runs --limit=0", "--limit needs a number of at least 1, not '0'", "→ gpucourse runs --limit=1"),
        ("hint b.2", "there is no exercise 'B.2'", "known: 1.1, 1.2"),
        ("grade --judge b.2/why=80", "there is no exercise 'B.2'", "known: 1.1, 1.2"),
        ("grade b.2", "there is no exercise 'B.2'", "known: 1.1, 1.2"),
        ("compare 1.1", "1.1 has no run yet", "gpucourse run 1.1"),
        ("edit 1.1", "1.1 has no part for you to write", "gpucourse show 1.1"),
        ("show 1.1 --solution --run latest", "--solution cannot be combined", "gpucourse show 1.1 --solution"),
        ("show 1.1 --solution", "1.1 has no part for you to write", "gpucourse show 1.1"),
    ],
)
def test_explain_suggests_the_intended_word(learning: Learning, words: str, message: str, hint: str) -> None:
    output = " ".join(learning.types(*words.split(), code=2).err.split())
    assert message in output
    assert hint in output
