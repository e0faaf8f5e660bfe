"""Starts `knap serve` with the default model, and Chromium on its page. $KNAP_BINARY names the program.

Every test that opens the page also fails on an error in the browser's console and on a request to another host. Every run has
a cache folder of its own: what servers draft follows from what others have measured and learned there."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import sync_playwright

WAIT_MS = 180_000  # for an answer, on a busy machine
# Root and containers cannot have the sandbox. The page is our own.
BROWSER_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]

cache = tempfile.TemporaryDirectory(prefix="knap-page-")
os.environ["KNAP_CACHE_DIR"] = cache.name


def pytest_unconfigure():
    cache.cleanup()


@contextmanager
def served(*flags):
    """The address of a server that runs meanwhile."""
    process = subprocess.Popen([os.environ["KNAP_BINARY"], "serve", "--port", "0", *flags],
                               stdout=subprocess.PIPE, text=True)
    try:
        yield re.search(r" at (http://\S+)", process.stdout.readline()).group(1)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


@pytest.fixture(scope="session")
def server():
    with served() as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert path, "expected chromium on the PATH: deps/setup packages chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=BROWSER_FLAGS)
        yield browser
        browser.close()


@contextmanager
def watched_page(browser, address, **options):
    """The page at `address`, whose faults fail the test."""
    faults = []
    context = browser.new_context(**options)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.on("console", lambda message: message.type in ("error", "warning") and faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: is_foreign(request.url, address) and faults.append(request.url))
    page.goto(address)
    wait_until(page, "document.getElementById('model').textContent !== ''")
    yield page
    context.close()
    assert faults == []


def is_foreign(url, address):
    return not url.startswith("data:") and urlsplit(url).netloc != urlsplit(address).netloc


@pytest.fixture
def page(browser, server):
    with watched_page(browser, server, viewport={"width": 1280, "height": 800}) as page:
        yield page


def wait_until(page, expression, timeout_s=WAIT_MS / 1000):
    """Waits until an expression of the page is true. (Playwright's own wait_for_function needs `eval` in the page, which its
    policy forbids.)"""
    end = time.monotonic() + timeout_s
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"expected {expression}"
        page.wait_for_timeout(20)


def change_settings(page, **values):
    """Sets fields of the settings: greedy and short unless told otherwise."""
    page.get_by_role("button", name="Settings").click()
    for name, value in {"temperature": 0, "max_tokens": 24, **values}.items():
        field = page.locator(f"#settings-form [name={name}]")
        if name == "strategy":
            field.select_option(value)
        else:
            field.fill(str(value))
    page.get_by_role("button", name="Done").click()


def ask(page, text):
    page.locator("#question").fill(text)
    page.keyboard.press("Enter")


def wait_for_end(page):
    page.locator("#send:visible").wait_for()


def answers(page):
    return page.locator(".message.assistant > .text")
