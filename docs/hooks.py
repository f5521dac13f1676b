"""The pages of the site besides the files of docs: README as the first page, the project's pages, and the lessons as a book."""

from __future__ import annotations

import re
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
_LICENSE = "https://www.apache.org/licenses/LICENSE-2.0"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the book after the first pages: a chapter for each module, its lessons in their order."""
    chapters: list[dict[str, Any]] = []
    for manifest in MODULES:
        module = yaml.safe_load(manifest.read_text(encoding="utf-8"))
        lessons = [module["lesson"], *module.get("further_lessons", ())]
        chapters.append({f"{module['id']} {module['title']}": [f"book/{manifest.parent.name}/{lesson}" for lesson in lessons]})
    assert config.nav is not None
    config.nav.insert(2, {"The book": chapters})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the project's pages and the lessons with their pictures."""
    for source, page in PROJECT_PAGES.items():
        text = _DOCS_LINK.sub(r"\1", (ROOT / source).read_text(encoding="utf-8"))
        text = text.replace("](README.md", "](index.md").replace("](LICENSE)", f"]({_LICENSE})")
        files.append(File.generated(config, page, content=text))
    for manifest in MODULES:
        folder = manifest.parent
        for file in [*folder.glob("*.md"), *folder.glob("pictures/*")]:
            files.append(File.generated(config, f"book/{folder.name}/{file.relative_to(folder)}", abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Shorten links to the project's pages: docs link to them one folder up, and on the site they are beside the others."""
    return re.sub(r"\]\(\.\./([A-Z]+\.md)", r"](\1", markdown)
