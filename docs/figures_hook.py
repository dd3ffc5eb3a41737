"""Lets pages show the figures of reports that are kept under results/."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add figures/NAME.svg, as report.md names them."""
    results = Path(config.config_file_path).parent / "results" / "paper" / "figures"
    for figure in sorted(results.glob("*.svg")):
        name = f"figures/{figure.name}"
        files.append(File.generated(config, name, abs_src_path=str(figure)))
    return files
