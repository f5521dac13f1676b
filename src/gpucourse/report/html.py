"""A report as one HTML file, to be read or printed, with embedded pictures and without scripts or external links."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from gpucourse.model.node import is_simulated
from gpucourse.model.report import LOCAL, Report

TEMPLATES = Path(__file__).with_name("templates")


def render(report: Report) -> bytes:
    """Return the report as a whole HTML document in UTF-8."""
    style = TEMPLATES.joinpath("report.css").read_text(encoding="utf-8")
    templates = make_environment(TEMPLATES)
    templates.filters["words"] = mark_code
    templates.filters["base64"] = _encode
    text = templates.get_template("document.html").render(
        report=report,
        simulated=LOCAL if is_simulated(report.mode) else "",
        style=Markup(style),  # noqa: S704  # a file of this package, and the policy names its digest
        policy=make_policy(style),
    )
    return text.encode()


def make_environment(*folders: Path, finalize: Callable[[object], object] | None = None) -> Environment:
    """Return the environment for the templates in these folders. It calls `finalize` on every value, then escapes the text."""
    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        auto_reload=False,
        trim_blocks=True,
    )


def make_policy(style: str, script: str = "") -> str:
    """Return the content security policy of a file: a browser may show only embedded pictures, and use only this style and this
    script.

    Names, logs and answers in the file are escaped; the policy protects the reader if an escape was forgotten.
    """
    scripts = _digest(script) if script else "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; img-src data:; base-uri 'none'; "
        f"form-action 'none'; style-src {_digest(style)}"
    )


def mark_code(text: str) -> Markup:
    """Return the text as HTML, with the parts between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one backtick has no partner
        return escape(text)
    pieces = [Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)]
    return Markup("").join(pieces)


def _digest(text: str) -> str:
    return f"'sha256-{_encode(sha256(text.encode()).digest())}'"


def _encode(data: bytes) -> str:
    return b64encode(data).decode()
