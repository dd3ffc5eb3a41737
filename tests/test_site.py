"""The built pages open from the file system, load nothing from elsewhere, and what is copied runs.

`make docs` builds the pages and then runs these tests; without a folder of pages they are skipped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Chromium, browser

import poolbn as pb

SITE = Path(os.environ.get("POOLBN_SITE", "none"))
PAGES = ["index", "gallery", "examples/schools", "tutorial", "api", "for_pgmpy_users"]

pytestmark = [
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="make docs runs these"),
    pytest.mark.skipif(browser() is None, reason="no Chromium"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def told(page: Chromium, method: str) -> list[Any]:
    return [event["params"] for event in page.events if event.get("method") == method]


@pytest.mark.parametrize("width", [1300, 400])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_needs_nothing_from_elsewhere(page: Chromium, name: str, width: int) -> None:
    page.size(width, 900)
    page.open(SITE / f"{name}.html")
    asked = [told["request"]["url"] for told in told(page, "Network.requestWillBeSent")]
    assert len(asked) > 3
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert told(page, "Network.loadingFailed") == []
    assert told(page, "Runtime.exceptionThrown") == []
    assert page.run("document.documentElement.scrollWidth") <= width


def test_no_page_names_a_script_or_style_elsewhere() -> None:
    for path in SITE.rglob("*.html"):
        tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", path.read_text(encoding="utf-8"))
        assert not [tag for tag in tags if re.search(r'(src|href)="?(https?:)?//', tag)], path


def test_the_search_finds_pages_without_a_server(page: Chromium) -> None:
    page.size(1300, 900)
    page.open(SITE / "index.html")
    page.click("input.md-search__input")
    for letter in "shrinkage":  # the search listens to keys
        page.call("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
        page.call("Input.dispatchKeyEvent", type="keyUp", key=letter)
    found = "[...document.querySelectorAll('.md-search-result__item a')].map((a) => a.href)"
    page.wait_until(lambda: any("glossary.html" in url for url in page.run(found)))
    assert all(url.startswith("file:") for url in page.run(found))


def copied(page: Chromium, block: int) -> str:
    """What the button of a block of code copies."""
    page.run(
        "window.taken = null; document.addEventListener('copy', () => {"
        "window.taken = document.activeElement.value; })"
    )
    page.click(f"#__code_{block} .md-code__button")
    page.wait_until(lambda: page.run("window.taken") is not None)
    return str(page.run("window.taken"))


def test_what_is_copied_runs(page: Chromium) -> None:
    page.size(1300, 900)
    page.open(SITE / "index.html")
    names: dict[str, Any] = {}
    assert copied(page, 0).splitlines()[-1] == "poolbn demo"
    code = copied(page, 1)
    assert ">>>" not in code
    assert "Network: 4 nodes" not in code
    exec(code, names)
    assert isinstance(names["net"], pb.Network)


def test_pages_of_notebooks_show_what_they_give(page: Chromium) -> None:
    page.open(SITE / "gallery.html")
    sizes = "[...document.querySelectorAll('article img')].map((img) => img.naturalWidth)"
    page.run("document.querySelectorAll('article img').forEach((img) => img.loading = 'eager')")
    page.wait_until(lambda: min(page.run(sizes)) > 0)
    assert len(page.run(sizes)) >= 13
