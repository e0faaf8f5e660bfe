// Draws the text inside a block: bold, italic, code, links and line breaks.
import { el } from "./dom.js";

const MARKS = ["***", "**", "__", "*", "_"];
const TAG_OF_MARK = { "**": "strong", "__": "strong", "*": "em", "_": "em" };
const ADDRESS = /https?:\/\/[^\s<>"'`]+/y;
const LINK_TARGET = /\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)/y;
const MAX_DEPTH = 8;

// Appends the text of `lines`, which are ranges of `source`. `leaf(parent, start, end)` appends a range
// of the source.
export function drawInline(parent, source, lines, leaf) {
  new Inline(source, lines, leaf).draw(parent, 0, undefined, 0);
}

class Inline {
  constructor(source, lines, leaf) {
    this.lines = lines;
    this.leaf = leaf;
    this.starts = [];  // of each line, in `text`
    let text = "";
    for (const line of lines) {
      this.starts.push(text.length);
      text += source.slice(line.start, line.end) + "\n";
    }
    this.text = text.slice(0, -1);
  }

  // Appends text as it is, with a break at the end of each line.
  plain(parent, from, to) {
    for (let i = 0; i < this.lines.length && this.starts[i] < to; ++i) {
      const line = this.lines[i];
      const begin = Math.max(from, this.starts[i]) - this.starts[i];
      const end = Math.min(to - this.starts[i], line.end - line.start);
      if (begin < end) {
        this.leaf(parent, line.start + begin, line.start + end);
      }
      const lineEnd = this.starts[i] + line.end - line.start;
      if (lineEnd >= from && lineEnd < to) {
        parent.append(el("br"));
      }
    }
  }

  draw(parent, from, to = this.text.length, depth = 0) {
    let plainFrom = from;
    for (let i = from; i < to;) {
      const found = depth < MAX_DEPTH ? this.at(i, to) : null;
      if (!found) {
        ++i;
        continue;
      }
      this.plain(parent, plainFrom, i);
      found.append(parent, depth + 1);
      i = plainFrom = found.end;
    }
    this.plain(parent, plainFrom, to);
  }

  // What begins at `i`: {append, end}, or null.
  at(i, to) {
    switch (this.text[i]) {
      case "\\": return this.escape(i, to);
      case "`": return this.code(i, to);
      case "[": return this.link(i, to);
      case "!": return this.text[i + 1] === "[" ? this.link(i + 1, to) : null;  // a picture: its address
      case "h": return this.address(i, to);
      case "*":
      case "_": return this.emphasis(i, to);
      default: return null;
    }
  }

  escape(i, to) {
    if (i + 1 >= to || !/[\\`*_{}[\]()#+\-.!|>~]/.test(this.text[i + 1])) {
      return null;
    }
    return { end: i + 2, append: parent => this.plain(parent, i + 1, i + 2) };
  }

  code(i, to) {
    const ticks = /`+/y;
    ticks.lastIndex = i;
    const mark = ticks.exec(this.text)[0];
    const close = this.text.indexOf(mark, i + mark.length);
    if (close < 0 || close + mark.length > to) {
      return null;
    }
    return {
      end: close + mark.length,
      append: parent => {
        const code = el("code");
        this.plain(code, i + mark.length, close);
        parent.append(code);
      },
    };
  }

  emphasis(i, to) {
    const mark = MARKS.find(one => this.text.startsWith(one, i));
    const inner = i + mark.length;
    const isInWord = mark[0] === "_" && /\w/.test(this.text[i - 1] || " ");
    if (isInWord || inner >= to || /\s/.test(this.text[inner])) {
      return null;
    }
    const close = this.closing(mark, inner, to);
    if (close < 0) {
      return null;
    }
    return {
      end: close + mark.length,
      append: (parent, depth) => {
        const outer = el(TAG_OF_MARK[mark] || "strong");
        const node = mark === "***" ? outer.appendChild(el("em")) : outer;
        this.draw(node, inner, close, depth);
        parent.append(outer);
      },
    };
  }

  closing(mark, from, to) {
    for (let at = this.text.indexOf(mark, from + 1); at >= 0; at = this.text.indexOf(mark, at + 1)) {
      if (at + mark.length > to) {
        return -1;
      }
      const isLonger = mark.length === 1 &&
        (this.text[at + 1] === mark || this.text[at - 1] === mark);
      const isInWord = mark[0] === "_" && /\w/.test(this.text[at + mark.length] || " ");
      if (!/\s/.test(this.text[at - 1]) && !isLonger && !isInWord) {
        return at;
      }
    }
    return -1;
  }

  link(i, to) {
    const close = this.text.indexOf("](", i + 1);
    if (close < 0 || close >= to || this.text.slice(i + 1, close).includes("[")) {
      return null;
    }
    LINK_TARGET.lastIndex = close + 1;
    const match = LINK_TARGET.exec(this.text);
    if (!match || LINK_TARGET.lastIndex > to) {
      return null;
    }
    return {
      end: LINK_TARGET.lastIndex,
      append: (parent, depth) => {
        const node = anchor(match[1]) || el("span");
        this.draw(node, i + 1, close, Math.max(depth, MAX_DEPTH - 2));
        parent.append(node);
      },
    };
  }

  address(i, to) {
    ADDRESS.lastIndex = i;
    const match = /\w/.test(this.text[i - 1] || " ") ? null : ADDRESS.exec(this.text);
    if (!match) {
      return null;
    }
    const address = match[0].slice(0, to - i).replace(/[.,;:!?)\]*_]+$/, "");
    const node = anchor(address);
    return node && {
      end: i + address.length,
      append: parent => {
        this.plain(node, i, i + address.length);
        parent.append(node);
      },
    };
  }
}

// A link to another site, or null: no other scheme than http and https is ever linked.
function anchor(address) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return null;
  }
  return el("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" });
}
