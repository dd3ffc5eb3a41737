"""Lets pages show the figures of reports that are kept under results/."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add figures/NAME.svg, as report.md names them; of the same name the first."""
    results = Path(config.config_file_path).parent / "results"
    found: dict[str, Path] = {}
    for study in ("paper", "residuals"):
        for figure in sorted((results / study / "figures").glob("*.svg")):
            found.setdefault(figure.name, figure)
    for name, figure in found.items():
        files.append(File.generated(config, f"figures/{name}", abs_src_path=str(figure)))
    return files
