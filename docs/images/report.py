"""Pictures of reports, for the documentation: run it from the root of the repository.

    Rscript -e 'write.csv(nlme::bdf, "bdf.csv", row.names = FALSE)'
    python docs/images/report.py bdf.csv

The schools are the 131 of Snijders and Bosker's book, in the R package nlme. Needs Chromium.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pandas as pd
from PIL import Image

import poolbn as pb

IMAGES = Path(__file__).parent
sys.path.insert(0, str(IMAGES.parents[1] / "tests"))
from chromium import Chromium  # noqa: E402

COLUMNS = {
    "schoolNR": "school",
    "sex": "girl",
    "ses": "ses",
    "IQ.verb": "iq_verbal",
    "IQ.perf": "iq_performance",
    "langPRET": "language_before",
    "aritPRET": "arithmetic_before",
    "langPOST": "language_after",
    "aritPOST": "arithmetic_after",
}
TIERS = [
    ["girl", "ses", "iq_verbal", "iq_performance"],
    ["language_before", "arithmetic_before"],
    ["language_after", "arithmetic_after"],
]
COLOURS = 128  # of a picture, so that it stays small


def schools(rows: Path, page: Path) -> None:
    """A report on pupils in 131 schools."""
    table = pd.read_csv(rows)[list(COLUMNS)].rename(columns=COLUMNS)
    table["school"] = "school " + table["school"].astype(str)
    kinds = {"girl": "discrete"}
    constraints = {"tiers": TIERS}
    net = pb.learn(table, group="school", kinds=kinds, constraints=constraints)
    boot = pb.bootstrap(table, group="school", kinds=kinds, constraints=constraints, replicates=40)
    pb.report(net, page, data=table, bootstrap=boot, constraints=constraints)


def shot(
    browser: Chromium,
    page: Path,
    name: str,
    size: tuple[int, int],
    at: str = "",
    *,
    dark: bool = False,
) -> None:
    """A picture of a page from an element on, in few colours."""
    browser.size(*size)
    browser.open(page)
    if browser.run("document.documentElement.dataset.theme") != ("dark" if dark else "light"):
        browser.click("#theme")
    browser.run("document.activeElement.blur()")
    where = f"document.querySelector('{at}').getBoundingClientRect().top - 60" if at else "0"
    browser.run(f"scrollTo({{top: scrollY * {int(bool(at))} + {where}, behavior: 'instant'}})")
    browser.settle()
    with tempfile.TemporaryDirectory() as folder:
        browser.screenshot(Path(folder) / "shot.png")
        whole = io.BytesIO((Path(folder) / "shot.png").read_bytes())
    few = (
        Image.open(whole)
        .convert("RGB")
        .quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    )
    few.save(IMAGES / name, optimize=True)
    print(name, (IMAGES / name).stat().st_size // 1000, "kB")


def main() -> None:
    """Make the reports, and pictures of them."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        subprocess.run([sys.executable, "-m", "poolbn", "demo", "-o", out / "demo"], check=True)
        schools(Path(sys.argv[1]), out / "schools.html")
        demo = out / "demo" / "report.html"
        with Chromium(out / "browser") as browser:
            shot(browser, demo, "report_light.png", (1300, 1400))
            shot(browser, demo, "report_dark.png", (1300, 1150), "#network", dark=True)
            shot(browser, demo, "report_phone.png", (400, 860))
            shot(browser, out / "schools.html", "report_schools.png", (1300, 1150), "#network")


if __name__ == "__main__":
    main()
