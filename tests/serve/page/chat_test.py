"""Conversations on the page, with the default model."""
import json
import urllib.error
import urllib.request

import pytest
from conftest import answers, ask, change_settings, served, wait_for_end, wait_until, watched_page

COPYING = "Repeat this exactly three times: the quick brown fox jumps over the lazy dog near the old stone bridge."


def slots(address):
    return json.load(urllib.request.urlopen(f"{address}/slots"))


def n_running(address):
    return sum(slot["is_processing"] for slot in slots(address))


def test_answers_stream(page):
    change_settings(page, max_tokens=48)
    page.evaluate("""() => {
        window.lengths = new Set();
        new MutationObserver(() => lengths.add(document.querySelector(".message.assistant > .text")?.textContent.length))
            .observe(document.getElementById("messages"), {childList: true, subtree: true, characterData: true});
    }""")
    ask(page, "Tell me about the sea.")
    wait_for_end(page)
    assert page.evaluate("lengths.size") >= 5
    assert answers(page).inner_text().strip()
    foot = page.locator(".message.assistant .foot").inner_text()
    assert " passes, " in foot and " tokens/s" in foot and foot.count("tokens in") == 1
    assert page.locator(".message.assistant").get_attribute("aria-busy") == "false"


def test_gain_is_shown_while_an_answer_grows(page):
    change_settings(page, max_tokens=1500, strategy="lookup")
    ask(page, "Write a very long story about a lighthouse.")
    wait_until(page, "/% of the drafted tokens accepted, about [0-9.]+ × plain decoding/.test(document.getElementById('live').textContent)")
    page.keyboard.press("Escape")
    wait_for_end(page)


def test_stop_frees_the_session(page, server):
    change_settings(page, max_tokens=1500)
    ask(page, "Write a very long story about a lighthouse.")
    wait_until(page, "document.querySelector('.message.assistant > .text').textContent.length > 40")
    assert n_running(server) == 1
    page.keyboard.press("Escape")
    wait_for_end(page)
    wait_until(page, """async () => !(await (await fetch("slots")).json()).some(slot => slot.is_processing)""", timeout_s=3)
    assert "Stopped." in page.locator(".message.assistant .foot").inner_text()
    length = len(answers(page).inner_text())
    page.wait_for_timeout(300)
    assert len(answers(page).inner_text()) == length > 0


def test_reload_keeps_conversations(page):
    change_settings(page)
    ask(page, "First question")
    wait_for_end(page)
    page.keyboard.press("Control+k")
    ask(page, "Second question")
    wait_for_end(page)
    text = answers(page).inner_text()
    page.reload()
    assert page.locator("#conversations .open").all_inner_texts() == ["Second question", "First question"]
    assert answers(page).inner_text() == text
    page.get_by_role("button", name="First question", exact=True).click()
    assert page.locator(".message.user > .text").inner_text() == "First question"
    assert page.locator(".message.assistant .foot").inner_text()


def test_reload_during_an_answer_keeps_its_beginning(page):
    change_settings(page, max_tokens=1500)
    ask(page, "Write a very long story about a lighthouse.")
    wait_until(page, "JSON.stringify(localStorage).length > 2000")
    page.reload()
    assert answers(page).inner_text().strip()
    assert "not completed" in page.locator(".message.assistant .foot").inner_text()
    assert page.locator("#send").is_visible()


def test_conversations_are_renamed_deleted_and_restored(page):
    change_settings(page)
    ask(page, "Old name")
    wait_for_end(page)
    page.get_by_role("button", name="Rename Old name").click()
    page.get_by_label("Name of the conversation").fill("New name")
    page.keyboard.press("Enter")
    page.reload()
    assert page.locator("#conversations .open").all_inner_texts() == ["New name"]
    page.get_by_role("button", name="Delete New name").click()
    assert page.locator(".message").count() == 0
    page.get_by_role("button", name="Undo").click()
    assert page.locator(".message").count() == 2
    page.get_by_role("button", name="Delete New name").click()
    page.reload()
    assert page.locator("#conversations .open").all_inner_texts() == ["New conversation"]


def test_deleting_ends_the_answer(page, server):
    change_settings(page, max_tokens=1500)
    ask(page, "Write a very long story about a lighthouse.")
    wait_until(page, "document.querySelector('.message.assistant > .text').textContent.length > 10")
    page.get_by_role("button", name="Delete Write a very long story").click()
    wait_until(page, """async () => !(await (await fetch("slots")).json()).some(slot => slot.is_processing)""", timeout_s=3)
    page.reload()
    assert page.locator("#conversations .open").all_inner_texts() == ["New conversation"]


def test_tabs_share_conversations(page, server):
    change_settings(page, max_tokens=4)
    other = page.context.new_page()
    other.goto(server)
    ask(page, "From the first tab")
    wait_for_end(page)
    ask(other, "From the second tab")
    wait_for_end(other)
    names = ["From the second tab", "From the first tab"]
    wait_until(page, "[...document.querySelectorAll('#conversations .open')].length === 2")
    assert sorted(page.locator("#conversations .open").all_inner_texts()) == sorted(names)
    other.get_by_role("button", name="From the first tab", exact=True).click()
    assert other.locator(".message").count() == 2


def test_two_conversations_answer_at_once(page, server):
    change_settings(page, max_tokens=1500)
    ask(page, "Write a very long story about a lighthouse.")
    wait_until(page, "document.querySelector('.message.assistant > .text').textContent.length > 10")
    page.keyboard.press("Control+k")
    ask(page, "Write a very long story about a river.")
    wait_until(page, "document.querySelector('.message.assistant > .text').textContent.length > 10")
    assert n_running(server) == 2
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Write a very long story about a lighthouse.", exact=True).click()
    page.get_by_role("button", name="Stop").click()
    wait_for_end(page)


def test_regenerating_replaces_the_answer(page):
    change_settings(page, temperature=1)
    ask(page, "Invent a name for a cat.")
    wait_for_end(page)
    before = answers(page).inner_text()
    page.get_by_role("button", name="Regenerate").click()
    wait_for_end(page)
    assert answers(page).count() == 1
    assert answers(page).inner_text() != before


def test_editing_replaces_the_last_question(page):
    change_settings(page)
    for question in ("One", "Two"):
        ask(page, question)
        wait_for_end(page)
    page.get_by_role("button", name="Edit").click()
    assert page.locator("#question").input_value() == "Two"
    page.keyboard.press("Escape")
    assert page.locator("#question").input_value() == ""
    page.get_by_role("button", name="Edit").click()
    ask(page, "Three")
    wait_for_end(page)
    assert page.locator(".message.user > .text").all_inner_texts() == ["One", "Three"]
    assert answers(page).count() == 2


def test_settings_are_sent_and_kept(page):
    change_settings(page, system="Be brief.", temperature=0.5, top_p=0.9, top_k=7, min_p=0.1, seed=11, max_tokens=3,
                    strategy="autoregressive")
    page.reload()
    with page.expect_request("**/v1/chat/completions") as request:
        ask(page, "Hello")
    body = request.value.post_data_json
    assert body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    assert [body[name] for name in ("temperature", "top_p", "top_k", "min_p", "seed", "max_tokens")] == [
        0.5, 0.9, 7, 0.1, 11, 3]
    assert body["knap"]["strategy"] == "autoregressive"
    wait_for_end(page)
    assert "reached its limit" in page.locator(".message.assistant .foot").inner_text()
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Defaults").click()
    page.get_by_role("button", name="Done").click()
    with page.expect_request("**/v1/chat/completions") as request:
        ask(page, "Hello")
    body = request.value.post_data_json
    assert "temperature" not in body and "strategy" not in body["knap"] and len(body["messages"]) == 3
    page.keyboard.press("Escape")
    wait_for_end(page)


@pytest.mark.parametrize("strategy, kind, title", [("lookup", "copied", "copied from the text so far"),
                                                    ("asd", "drafted", "drafted by a plan: a")])
def test_colours_show_where_tokens_come_from(page, strategy, kind, title):
    change_settings(page, max_tokens=60, strategy=strategy)
    ask(page, COPYING)
    wait_for_end(page)
    plain = answers(page).inner_text()
    assert page.locator(".message .token").count() == 0
    page.get_by_label("Show where tokens come from").check()
    assert page.locator("#legend li").count() == 4
    assert answers(page).inner_text() == plain
    tokens = page.locator(f".message .token.{kind}")
    assert tokens.count() > 0 and page.locator(".message .token.plain").count() > 0
    assert all(token.get_attribute("title").startswith(title) for token in tokens.all())
    assert tokens.first.evaluate("node => getComputedStyle(node).backgroundColor") != "rgba(0, 0, 0, 0)"
    page.reload()
    assert tokens.count() > 0


@pytest.mark.parametrize("temperature", [0, 1])
def test_comparison_finds_the_same_text(page, temperature):
    change_settings(page, max_tokens=40, temperature=temperature, strategy="lookup")
    ask(page, COPYING)
    wait_for_end(page)
    foot = page.locator(".message.assistant .foot")
    assert "times the speed" not in foot.inner_text()
    with page.expect_request("**/v1/chat/completions") as request:
        page.get_by_role("button", name="Compare with plain decoding").click()
    assert request.value.post_data_json["knap"]["strategy"] == "autoregressive"
    wait_for_end(page)
    assert "times the speed of plain decoding" in foot.inner_text()
    assert foot.inner_text().endswith("same text.")
    assert answers(page).count() == 1


def test_errors_are_shown(page, server):
    page.route("**/v1/chat/completions", lambda route: route.fulfill(
        status=200, content_type="text/event-stream",
        body='data: {"choices":[{"index":0,"delta":{"content":"Half"},"finish_reason":null}]}\n\n'
             'data: {"error":{"message":"it broke"}}\n\n'))
    ask(page, "Hello")
    wait_for_end(page)
    assert page.locator(".message.assistant .foot").inner_text() == "it broke"
    assert answers(page).inner_text() == "Half"
    page.unroute("**/v1/chat/completions")


def test_page_asks_for_the_key(browser):
    with served("--api-key", "secret") as address:
        with pytest.raises(urllib.error.HTTPError, match="401") as refusal:
            urllib.request.urlopen(address)
        assert refusal.value.headers["WWW-Authenticate"].startswith("Basic ")
        credentials = {"username": "me", "password": "secret"}
        with watched_page(browser, address, http_credentials=credentials) as page:
            change_settings(page, key="secret")
            with page.expect_request("**/v1/chat/completions") as request:
                ask(page, "Hello")
            assert request.value.all_headers()["authorization"] == "Bearer secret"
            wait_for_end(page)
            assert answers(page).inner_text().strip()
            assert page.evaluate("JSON.stringify(localStorage)").find("secret") < 0
