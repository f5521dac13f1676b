"""Judge the file of an image, for either engine, by the faults that images.py finds in it."""

from __future__ import annotations

from pathlib import Path

import images

from gpucourse.judge import Part, Verdict

DRIVER = "570.172"


def judge_image(part: Part, required: tuple[str, ...]) -> None:
    """Raise the verdict for the first fault, if there is one. The others are only counted.

    `required` are words that a repaired file must still have outside its comments. Of "CMD|ENTRYPOINT", one word is enough.
    """
    if part.text == (Path(__file__).parent.parent / part.file.name).read_text(encoding="utf-8"):
        raise Verdict("open", sentence="as delivered: its faults are not repaired yet")
    text = images.without_comments(part.text)
    missing = [words for words in required if not any(word in text for word in words.split("|"))]
    if missing:
        raise part.wrong("emptied", word=missing[0].partition("|")[0])
    faults = images.find_faults(part.text, DRIVER)
    if len(faults) > 1:
        part.note(f"{len(faults) - 1} more {'fault' if len(faults) == 2 else 'faults'} after this one")
    if faults:
        raise part.wrong(faults[0].word, fault=f"line {faults[0].line}: {faults[0].says}")
    part.note("no fault is left")
