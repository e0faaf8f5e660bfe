// Draws Markdown: headings, paragraphs, lists, quotes, tables, code, and what inline.js draws.
import { parseBlocks } from "./blocks.js";
import { copyText, el } from "./dom.js";
import { drawInline } from "./inline.js";

// Draws `text` into `container`. Called again with a longer text, it keeps the blocks that have not
// changed, and with them what the user has selected. `leaf(parent, start, end)` appends a range of the
// text; `style` names how it does that.
export function drawMarkdown(container, text, leaf, style) {
  const before = container.drawn || [];
  const drawn = [];
  let isSame = true;
  for (const block of parseBlocks(text)) {
    const key = `${style} ${block.start} ${text.slice(block.start, block.end)}`;
    const old = before[drawn.length];
    isSame &&= old !== undefined && old.key === key;
    drawn.push(isSame ? old : { key, node: drawBlock(block, text, leaf) });
  }
  const kept = drawn.findIndex((one, i) => one !== before[i]);
  const nKept = kept < 0 ? drawn.length : kept;
  while (container.childNodes.length > nKept) {
    container.lastChild.remove();
  }
  container.append(...drawn.slice(nKept).map(one => one.node));
  container.drawn = drawn;
}

function drawBlock(block, text, leaf) {
  const inline = (node, lines) => {
    drawInline(node, text, lines, leaf);
    return node;
  };
  const inner = (node, blocks) => {
    node.append(...blocks.map(one => drawBlock(one, text, leaf)));
    return node;
  };
  switch (block.type) {
    case "heading":  // the page's own headings are h1 and h2
      return inline(el(`h${Math.min(block.level + 2, 6)}`), block.lines);
    case "rule":
      return el("hr");
    case "quote":
      return inner(el("blockquote"), block.blocks);
    case "ul":
    case "ol":
      return drawList(block, inner);
    case "table":
      return drawTable(block, inline);
    case "code":
      return drawCode(block, leaf);
    default:
      return inline(el("p"), block.lines);
  }
}

function drawList(block, inner) {
  const list = el(block.type, block.type === "ol" ? { start: block.from } : {});
  list.append(...block.items.map(item => inner(el("li"), item)));
  return list;
}

function drawTable(block, inline) {
  const row = (tag, cells) => el("tr", {}, ...cells.map(cell => inline(el(tag), [cell])));
  const [head, ...rows] = block.rows;
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" },
    el("table", {}, el("thead", {}, row("th", head)),
      el("tbody", {}, ...rows.map(cells => row("td", cells)))));
}

function drawCode(block, leaf) {
  const code = el("code");
  for (const [i, line] of block.lines.entries()) {
    leaf(code, line.start, line.end);
    if (i + 1 < block.lines.length) {
      code.append("\n");
    }
  }
  const copy = el("button", {
    class: "small",
    click: async () => {
      await copyText(code.textContent);
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    },
  }, "Copy");
  return el("div", { class: "code" },
    el("div", { class: "code-head" }, el("span", {}, block.language || "text"), copy),
    el("pre", { tabindex: "0" }, code));
}
