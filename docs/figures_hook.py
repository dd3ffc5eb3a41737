"""Adds what is made when the pages are built: figures of results/, and notebooks that have run."""

from functools import cache
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from notebooks import as_page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add figures/NAME.svg, as report.md names them, of the same name the first; and notebooks."""
    results = Path(config.config_file_path).parent / "results"
    found: dict[str, Path] = {}
    for study in ("paper", "residuals"):
        for figure in sorted((results / study / "figures").glob("*.svg")):
            found.setdefault(figure.name, figure)
    for name, figure in found.items():
        files.append(File.generated(config, f"figures/{name}", abs_src_path=str(figure)))
    for notebook in sorted(Path(config.docs_dir).rglob("*.ipynb")):
        folder = notebook.parent.relative_to(config.docs_dir)
        page, pictures = _page(notebook, notebook.stat().st_mtime)
        path = (folder / notebook.stem).as_posix()
        files.append(File.generated(config, f"{path}.md", content=page))
        for name, picture in pictures.items():
            files.append(File.generated(config, (folder / name).as_posix(), content=picture))
    return files


@cache  # a server builds the pages again whenever one of them changes
def _page(notebook: Path, changed: float) -> tuple[str, dict[str, bytes]]:
    page, pictures = as_page(notebook)
    return f"{page}\n[Download this page as a notebook]({notebook.name})\n", pictures
