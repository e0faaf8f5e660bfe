"""The page's modules by themselves, in the browser: Markdown, tokens, server-sent events, metrics."""
import pytest
from conftest import watched_page


@pytest.fixture(scope="module")
def page(browser, server):
    with watched_page(browser, server) as page:
        yield page


DRAW = """async text => {
    const { drawMarkdown } = await import("/page/markdown.js");
    const node = document.createElement("div");
    drawMarkdown(node, text, (parent, start, end) => parent.append(text.slice(start, end)), "plain");
    return node.outerHTML.slice(5, -6);
}"""

MARKDOWN = {
    "One\n\nTwo": "<p>One</p><p>Two</p>",
    "One\nTwo": "<p>One<br>Two</p>",
    "# Big\n### Small": "<h3>Big</h3><h5>Small</h5>",
    "a **bold** b": "<p>a <strong>bold</strong> b</p>",
    "*it* and _it_": "<p><em>it</em> and <em>it</em></p>",
    "***both***": "<p><strong><em>both</em></strong></p>",
    "**a *b* c**": "<p><strong>a <em>b</em> c</strong></p>",
    "**over\nlines**": "<p><strong>over<br>lines</strong></p>",
    "snake_case_name 2 * 3 * 4": "<p>snake_case_name 2 * 3 * 4</p>",
    "`a*b*` ``c`d``": "<p><code>a*b*</code> <code>c`d</code></p>",
    r"\*not\*": "<p>*not*</p>",
    "**open": "<p>**open</p>",
    "- a\n- b\n  - c\n- d": "<ul><li><p>a</p></li><li><p>b</p><ul><li><p>c</p></li></ul></li><li><p>d</p></li></ul>",
    "3. a\n4. b": '<ol start="3"><li><p>a</p></li><li><p>b</p></li></ol>',
    "1. a\n\n2. b\n\nend": '<ol start="1"><li><p>a</p></li><li><p>b</p></li></ol><p>end</p>',
    "> a\n> b": "<blockquote><p>a<br>b</p></blockquote>",
    "---": "<hr>",
    "see https://example.org/a.": '<p>see <a href="https://example.org/a" target="_blank" '
                                  'rel="noopener noreferrer">https://example.org/a</a>.</p>',
    "[here](http://example.org)": '<p><a href="http://example.org/" target="_blank" rel="noopener noreferrer">here</a></p>',
    "![x](http://example.org)!": '<p><a href="http://example.org/" target="_blank" rel="noopener noreferrer">x</a>!</p>',
}

HOSTILE = [
    "<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "[x](javascript:alert(1))", "[x](data:text/html,hi)",
    "[x]( java\nscript:alert(1))", "![x](http://127.0.0.1:1/x.png)", "[x](//example.org)", "[x](/slots)",
    "[<img src=x>](https://example.org)", "```<b>\n<script>alert(1)</script>\n```", "| <img src=x> |\n|-|\n| <b> |",
    "[x](https://example.org\" onclick=\"alert(1))", "`<b>`", "# <b>bold</b>", "javascript:alert(1)",
]


@pytest.mark.parametrize("text", MARKDOWN)
def test_markdown(page, text):
    assert page.evaluate(DRAW, text) == MARKDOWN[text]


def test_code_and_tables(page):
    drawn = page.evaluate(DRAW, "```python\nif a < b:\n    **c**\n```\nafter\n\n| a | b |\n|---|:-:|\n| 1 | *2* |\n")
    assert '<span>python</span>' in drawn
    assert '<pre tabindex="0"><code>if a &lt; b:\n    **c**</code></pre>' in drawn
    assert "<p>after</p>" in drawn
    assert "<th> a </th><th> b </th>" in drawn and "<td> 1 </td><td> <em>2</em> </td>" in drawn


def test_copy_button_copies_the_code(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("""async () => {
        const { drawMarkdown } = await import("/page/markdown.js");
        const text = "```\\na\\n  b\\n```";
        drawMarkdown(document.getElementById("messages"), text,
                     (parent, start, end) => parent.append(text.slice(start, end)), "plain");
    }""")
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "a\n  b"


@pytest.mark.parametrize("text", HOSTILE)
def test_model_text_is_never_html(page, text):
    found = page.evaluate("""async text => {
        const { drawMarkdown } = await import("/page/markdown.js");
        const node = document.getElementById("messages");
        drawMarkdown(node, text, (parent, start, end) => parent.append(text.slice(start, end)), "plain");
        const all = [...node.querySelectorAll("*")];
        return { tags: all.map(one => one.localName), links: all.map(one => one.getAttribute("href")).filter(Boolean),
                 rel: all.filter(one => one.localName === "a").every(one => one.rel.includes("noopener")),
                 handlers: all.flatMap(one => [...one.attributes]).filter(one => /^on/.test(one.name)).length };
    }""", text)
    assert not {"img", "script", "b", "iframe"} & set(found["tags"])
    assert all(link.startswith(("https://", "http://")) for link in found["links"])
    assert found["rel"] and found["handlers"] == 0


@pytest.mark.parametrize("text", [">" * 20000, "- " * 9000, "*" * 20000, "[" * 20000, "`" * 20001, "**a " * 5000, "|" * 9999])
def test_strange_text_is_drawn_quickly(page, text):
    ms = page.evaluate("""async text => {
        const { drawMarkdown } = await import("/page/markdown.js");
        const start = performance.now();
        drawMarkdown(document.createElement("div"), text, () => {}, "plain");
        return performance.now() - start;
    }""", text)
    assert ms < 3000


def test_growing_text_keeps_finished_blocks(page):
    assert page.evaluate("""async () => {
        const { drawMarkdown } = await import("/page/markdown.js");
        const node = document.createElement("div");
        const whole = "# Title\\n\\nFirst *one*\\n\\n- a\\n- b\\n\\n```\\ncode\\n```\\nlast";
        const draw = text => drawMarkdown(node, text, (p, a, b) => p.append(text.slice(a, b)), "plain");
        let first = null;
        for (let n = 1; n <= whole.length; ++n) {
            draw(whole.slice(0, n));
            if (n > 12 && first && node.firstChild !== first) return "the title was drawn again";
            if (n > 10) first = node.firstChild;
        }
        const fresh = document.createElement("div");
        drawMarkdown(fresh, whole, (p, a, b) => p.append(whole.slice(a, b)), "plain");
        return node.innerHTML === fresh.innerHTML ? "same" : node.innerHTML;
    }""") == "same"


TOKENS = """async ([rounds, texts]) => {
    const { TokenMap } = await import("/page/tokens.js");
    const map = new TokenMap();
    rounds.forEach((round, i) => map.add(round, texts[i]));
    return map.pieces;
}"""


def token_round(source, plan, *tokens):
    return {"source": source, "plan": plan, "tokens": [{"text": text, "drafted": drafted} for text, drafted in tokens]}


def test_tokens_are_placed_in_the_text(page):
    rounds = [token_round("none", "", ("The", False)), token_round("copy", "", (" quick", True), (" fox", False)),
              token_round("plan", "a=w16", (" ran", True)), token_round("forced", "", ("}", True))]
    texts = ["The", "The quick fox", "The quick fox ran", "The quick fox ran}"]
    assert page.evaluate(TOKENS, [rounds, texts]) == [
        [3, "plain", ""], [9, "copied", ""], [13, "plain", ""], [17, "drafted", "a=w16"], [18, "forced", ""]]


def test_tokens_of_parts_of_characters_are_placed(page):
    rounds = [token_round("plan", "p", ("a ", True), ("\ufffd", True)), token_round("none", "", ("\ufffd", False)),
              token_round("none", "", (" b", False))]
    assert page.evaluate(TOKENS, [rounds, ["a ", "a 😀", "a 😀 b"]]) == [
        [2, "drafted", "p"], [4, "drafted", "p"], [6, "plain", ""]]


def test_text_that_comes_later_is_placed_then(page):
    rounds = [token_round("none", "", ("ab", False), ("cd", False)), token_round("copy", "", ("ef", True))]
    assert page.evaluate(TOKENS, [rounds, ["ab", "abcdef"]]) == [[2, "plain", ""], [4, "plain", ""], [6, "copied", ""]]


def test_events_survive_any_cut(page):
    assert page.evaluate("""async () => {
        const { events } = await import("/page/api.js");
        const bytes = new TextEncoder().encode(":\\n\\ndata: {\\"a\\":\\"é😀\\"}\\n\\n:\\n\\ndata: [DONE]\\n\\n");
        for (let cut = 0; cut <= bytes.length; ++cut) {
            const stream = new ReadableStream({ start(to) {
                to.enqueue(bytes.slice(0, cut)); to.enqueue(bytes.slice(cut)); to.close(); } });
            const found = [];
            for await (const event of events(stream)) found.push(event);
            if (JSON.stringify(found) !== JSON.stringify(['{"a":"é😀"}', "[DONE]"])) return `${cut}: ${found}`;
        }
        return "";
    }""") == ""


def test_metrics_are_summed_over_labels(page):
    assert page.evaluate("""async () => {
        const { between, parseMetrics } = await import("/page/metrics.js");
        const text = n => `# HELP x y\\nknap:tokens_total{strategy="a",origin="copy"} ${n}\\n` +
            `knap:tokens_total{strategy="b c",origin="plain"} 5\\nllamacpp:spec_decode_num_draft_tokens_total ${2 * n}\\n` +
            `llamacpp:spec_decode_num_accepted_tokens_total ${n}\\n`;
        return between({ at: 0, read: parseMetrics(text(10)) }, { at: 2000, read: parseMetrics(text(30)) });
    }""") == {"tokensPerSecond": 10, "acceptedShare": 0.5}


PACE = """async ([rounds, figures]) => {
    const { PlainPace } = await import("/page/answers.js");
    const pace = new PlainPace();
    rounds.forEach(([end, nDrafted]) => pace.add(end, { n_drafted: nDrafted }));
    return pace.gain(figures) ?? null;
}"""


def test_gain_is_told_by_rounds_without_drafts(page):
    """Seven steps of 10 ms, one of them held up, and a draft that gives five tokens in 20 ms."""
    ends = [10, 20, 30, 90, 100, 110, 120]
    rounds = [[0, 0]] + [[end, 0] for end in ends] + [[140, 4]]
    figures = {"nTokens": 13, "ms": 140, "nDrafted": 4}
    assert page.evaluate(PACE, [rounds, figures]) == pytest.approx(12 * 10 / 140)
    assert page.evaluate(PACE, [rounds[:5], figures]) is None, "four steps say little"
    assert page.evaluate(PACE, [rounds, figures | {"nDrafted": 0}]) is None
