"""The documentation site, built and opened as a file: its search works without a server, and it fetches nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chromium import Chromium
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.system
def test_site_is_searched_without_a_server(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="make docs installs it")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=True)
    with Chromium(tmp_path) as browser:
        page = browser.open((tmp_path / "site" / "index.html").as_uri())
        page.click("#__search")
        state = "document.querySelector('.md-search-result__meta').textContent.trim()"
        until(lambda: page.evaluate(state) not in {"", "Initializing search"}, "the search has read its index")
        page.type_into(".md-search__input", "checkpoin")
        page.press("t", "t")  # the theme reads the field when a key is released
        until(
            lambda: page.evaluate("document.querySelectorAll('.md-search-result__item').length") > 0, "the search finds pages"
        )
        assert page.evaluate("document.querySelector('.md-footer__link--next').textContent").split()[-1] == "Installation"
        assert page.complaints() == []
