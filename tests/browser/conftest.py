"""A headless Chromium without a network: Debian's, or the one that SUPERMARKET_CHROMIUM names."""

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def browser():
    path = os.environ.get("SUPERMARKET_CHROMIUM") or shutil.which("chromium")
    if not path or not Path(path).is_file():
        said = "No browser: on Debian, apt-get install chromium, or set SUPERMARKET_CHROMIUM."
        (pytest.fail if os.environ.get("CI") else pytest.skip)(said)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def visit(browser):
    """Return a function that opens a file in a page and keeps the list of what went wrong in it."""
    contexts = []

    def visited(address, width=1100, height=800, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.faults = []

        def gate(route):
            if route.request.url.startswith(("file:", "data:", "blob:")):
                route.continue_()
            else:
                page.faults.append(f"asks for {route.request.url}")
                route.abort()

        page.route("**/*", gate)
        page.on("pageerror", lambda error: page.faults.append(f"script error: {error}"))
        page.on("console", lambda said: said.type in ("error", "warning")
                and page.faults.append(f"console {said.type}: {said.text}"))  # fmt: skip
        page.on("requestfailed", lambda request: page.faults.append(f"failed: {request.url}"))
        page.goto(address)
        return page

    yield visited
    for context in contexts:
        context.close()
