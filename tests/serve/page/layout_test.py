"""How the page looks and is used: widths, keyboard, colours, accessibility, the tab of the server."""
import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import ask, change_settings, wait_for_end, wait_until, watched_page

WIDE = ("# A title\n\n" + "verylongword" * 30 + "\n\n```python\n" + "x = 1; " * 60 + "\n```\n\n| " + " | ".join("abcdefgh" * 3 for _ in range(9)) +
        " |\n|" + "---|" * 9 + "\n| " + " | ".join("1" * 30 for _ in range(9)) + " |\n\n- a\n  - b `" + "c" * 300 + "`\n\n"
        "[link](https://example.org)\n\n> quote\n")
CONVERSATION = {
    "id": "wide", "title": "W" * 200, "named": True, "changed": 1,
    "messages": [{"role": "user", "content": "q" * 400}, {
        "role": "assistant", "content": WIDE, "reasoning": "Thinking " * 9, "finish": "stop", "settings": {"seed": 1},
        "pieces": [[20, "copied", ""], [300, "drafted", "a=w16+256"], [500, "forced", ""], [600, "plain", ""]],
        "figures": {"nTokens": 9, "nPasses": 5, "ms": 10, "perSecond": 100, "nDrafted": 8, "nAccepted": 4,
                    "strategy": "knapspec"},
        "decisions": [{"token": 0, "source": "a plan", "plan": "a=w16+256" * 9, "reason": "it is the fastest " * 9,
                       "predicted": 1.5, "measured": 1.4}],
        "comparison": {"isSame": True, "gain": 1.5, "perSecond": 60}}]}
SIZES = {"phone": {"width": 390, "height": 844}, "desktop": {"width": 1280, "height": 800}}


def store(page, conversation):
    page.evaluate("text => localStorage.setItem('knap.conversation.wide', text)", json.dumps(conversation))
    page.reload()
    wait_until(page, "document.getElementById('model').textContent !== ''")


@pytest.fixture(params=SIZES)
def filled(browser, server, request):
    with watched_page(browser, server, viewport=SIZES[request.param]) as page:
        store(page, CONVERSATION)
        page.get_by_label("Show where tokens come from").check()
        yield page


def overflow(page):
    """Pixels by which the page is wider than the window, and elements outside of it that nothing scrolls."""
    return page.evaluate("""() => {
        const inside = node => node === document.body ||
            (!/auto|scroll|hidden/.test(getComputedStyle(node).overflowX) && inside(node.parentElement));
        const out = [...document.querySelectorAll("body *")].filter(node => node.checkVisibility() &&
            node.getBoundingClientRect().right > innerWidth + 1 && inside(node.parentElement));
        return [document.documentElement.scrollWidth - innerWidth, out.map(node => node.outerHTML.slice(0, 80))];
    }""")


def test_nothing_scrolls_sideways(filled):
    assert filled.locator(".message").count() == 2
    assert overflow(filled) == [0, []]
    # Only code and tables scroll by themselves.
    assert filled.evaluate("document.getElementById('messages').scrollWidth - document.getElementById('messages').clientWidth") == 0
    filled.get_by_role("tab", name="Server").click()
    filled.locator("#slots td").first.wait_for()
    assert overflow(filled) == [0, []]
    filled.get_by_role("button", name="Settings").click()
    assert overflow(filled) == [0, []]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(filled, scheme):
    filled.emulate_media(color_scheme=scheme)
    wait_until(filled, f"document.documentElement.dataset.theme === '{scheme}'")
    filled.get_by_text("Thoughts").click()
    check_with_axe(filled)
    filled.get_by_role("tab", name="Server").click()
    filled.locator("#slots td").first.wait_for()
    check_with_axe(filled)
    filled.get_by_role("button", name="Settings").click()
    check_with_axe(filled)


def check_with_axe(page):
    violations = Axe().run(page).response["violations"]
    assert [(one["id"], [node["target"] for node in one["nodes"]]) for one in violations] == []


def test_phone_shows_the_list_by_a_button(browser, server):
    with watched_page(browser, server, viewport=SIZES["phone"]) as page:
        store(page, CONVERSATION)
        assert not page.locator("#sidebar").is_visible()
        page.get_by_role("button", name="Conversations").click()
        assert page.locator("#sidebar").is_visible()
        page.locator("#conversations .open").first.click()
        assert not page.locator("#sidebar").is_visible()


def test_keys(page):
    change_settings(page, max_tokens=8)
    question = page.locator("#question")
    question.focus()
    page.keyboard.type("One")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("Two")
    assert question.input_value() == "One\nTwo"
    page.keyboard.press("Enter")
    wait_for_end(page)
    assert page.locator(".message.user > .text").inner_text() == "One\nTwo"
    page.keyboard.press("Control+k")
    assert page.locator(".message").count() == 0
    assert page.evaluate("document.activeElement.id") == "question"
    page.locator("#tab-chat").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#server").is_visible() and page.evaluate("document.activeElement.id") == "tab-server"
    page.keyboard.press("Control+k")
    assert page.locator("#chat").is_visible()


def test_every_control_is_reached_by_tab_and_shows_focus(page):
    store(page, CONVERSATION)
    page.evaluate("document.activeElement.blur()")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        outline = page.evaluate("[document.activeElement === document.body, getComputedStyle(document.activeElement).outlineStyle]")
        assert outline[0] or outline[1] != "none", page.evaluate("document.activeElement.outerHTML")
    for name in ("tab-chat", "theme", "settings-open", "new", "✎", "✕", "colours", "messages", "question", "send", "Copy",
                 "Edit", "Regenerate", "Compare with plain decoding"):
        assert name in seen, name


def test_theme_follows_the_system_until_chosen(page):
    def is_theme(name):
        return f"document.documentElement.dataset.theme === '{name}'"

    page.emulate_media(color_scheme="dark")
    wait_until(page, is_theme("dark"))
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    wait_until(page, is_theme("light"))
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    button = page.get_by_role("button", name="Dark colours")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    page.reload()
    assert page.evaluate(is_theme("dark")) and button.get_attribute("aria-pressed") == "true"


def test_server_tab_draws_load_and_decisions(page):
    change_settings(page, max_tokens=6000)
    ask(page, "Write a very long story about a lighthouse.")
    page.get_by_role("tab", name="Server").click()
    wait_until(page, """() => [...document.querySelectorAll("#charts polyline")].every(
        line => line.classList.contains("series-1") || /,.* .*,/.test(line.getAttribute("points")))""")
    assert page.locator("#charts figure").count() == 4
    assert "1 running, 0 waiting" in page.locator("#charts").inner_text()
    assert page.locator("#charts .scale").all_inner_texts()[1:] == ["2", "100 %", "100 %"]
    assert page.locator("#slots td", has_text="answering").count() == 1
    n_asked = []
    page.on("request", lambda request: n_asked.append(request.url))
    page.get_by_role("tab", name="Chat").click()
    page.keyboard.press("Escape")
    wait_for_end(page)
    n_asked.clear()
    page.wait_for_timeout(1500)
    assert n_asked == []  # nothing is asked while the tab is hidden


def test_decisions_of_the_last_answer_are_listed(page):
    store(page, CONVERSATION)
    page.get_by_role("tab", name="Server").click()
    assert page.locator("#decisions tbody tr").count() == 1
    assert "1.50 ×" in page.locator("#decisions").inner_text()
