"""Add further pages to the site: README as the first page, the project's pages, and the lessons as a book.

The address of the repository comes from pyproject.toml. Nothing is fetched from elsewhere: no badge, no count of stars.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
MODULES = sorted(ROOT.glob("modules/*/module.yaml"))
PROJECT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
_DOCS_LINK = re.compile(r"(\]\(|src=\")docs/")
_BADGE = re.compile(r"^\[?!\[[^\]]*\]\(https://.*\n", re.MULTILINE)
_CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
_CODE = re.compile(r"<code>([^<]+)</code>")
_STARS = ' data-md-component="source"'
_LICENSE = "https://www.apache.org/licenses/LICENSE-2.0"


def read_repository() -> str:
    """Return the address of the repository in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["urls"]["Repository"])


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the repository, and put the book after the first pages: one chapter for each module, with its lessons in order."""
    config.repo_url = read_repository()
    config.repo_name = config.repo_url.removeprefix("https://github.com/")
    chapters: list[dict[str, Any]] = []
    for manifest in MODULES:
        module = yaml.safe_load(manifest.read_text(encoding="utf-8"))
        lessons = [module["lesson"], *module.get("further_lessons", ())]
        chapters.append({f"{module['id']} {module['title']}": [f"book/{manifest.parent.name}/{lesson}" for lesson in lessons]})
    assert config.nav is not None
    config.nav.insert(3, {"The book": chapters})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the project's pages and the lessons with their pictures."""
    for source, page in PROJECT_PAGES.items():
        text = _DOCS_LINK.sub(r"\1", _BADGE.sub("", (ROOT / source).read_text(encoding="utf-8")))
        text = (
            text.replace("](modules/", "](book/").replace("](README.md", "](index.md").replace("](LICENSE)", f"]({_LICENSE})")
        )
        files.append(File.generated(config, page, content=text))
    for manifest in MODULES:
        folder = manifest.parent
        for file in [*folder.glob("*.md"), *folder.glob("pictures/*")]:
            files.append(File.generated(config, f"book/{folder.name}/{file.relative_to(folder)}", abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the page with shorter links to the project's pages. Pages in docs link to the folder above, but on the site these
    pages are in the same folder."""
    return re.sub(r"\]\(\.\./([A-Z]+\.md)", r"](\1", markdown)


def on_page_content(html: str, **_: object) -> str:
    """Return the page with the words of commands in tables kept whole, because browsers would break `--set` after its first
    hyphen."""
    return _CELL.sub(lambda cell: _CODE.sub(_keep_words, cell[0]), html)


def _keep_words(code: re.Match[str]) -> str:
    words = (f"<span>{word}</span>" for word in code[1].split(" "))
    return f"<code>{' '.join(words)}</code>"


def on_post_page(output: str, **_: object) -> str:
    """Return the page without the part that makes the browser request the count of stars from GitHub."""
    return output.replace(_STARS, "")
