// Splits Markdown into blocks. Lines are ranges [start, end) of the text, so that what is drawn can be
// traced back to the tokens it came from.

const FENCE = /^ {0,3}(```+|~~~+)\s*([\w+#.-]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+/;
const RULE = /^ {0,3}([-*_])[ \t]*(\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])[ \t]+/;
const TABLE_RULE = /^ *\|?[ ]*:?-+:?[ ]*(\|[ ]*:?-+:?[ ]*)*\|?[ ]*$/;
const MAX_DEPTH = 6;  // of lists and quotes inside each other; what is deeper is plain text

export function parseBlocks(text) {
  const lines = [];
  for (let start = 0; start <= text.length;) {
    const found = text.indexOf("\n", start);
    const end = found < 0 ? text.length : found;
    lines.push({ start, end });
    start = end + 1;
  }
  return new Parser(text).blocks(lines, 0);
}

class Parser {
  constructor(text) {
    this.source = text;
  }

  text(line) {
    return this.source.slice(line.start, line.end);
  }

  blocks(lines, depth) {
    const blocks = [];
    for (let i = 0; i < lines.length;) {
      if (this.text(lines[i]).trim() === "") {
        ++i;
        continue;
      }
      const { block, next } = this.block(lines, i, depth);
      block.start = lines[i].start;
      block.end = lines[next - 1].end;
      blocks.push(block);
      i = next;
    }
    return blocks;
  }

  block(lines, i, depth) {
    const line = this.text(lines[i]);
    let match;
    if ((match = FENCE.exec(line))) {
      return this.code(lines, i, match);
    }
    if ((match = HEADING.exec(line))) {
      const range = { start: lines[i].start + match[0].length, end: lines[i].end };
      return { block: { type: "heading", level: match[1].length, lines: [range] }, next: i + 1 };
    }
    if (RULE.test(line)) {
      return { block: { type: "rule" }, next: i + 1 };
    }
    if (QUOTE.test(line) && depth < MAX_DEPTH) {
      return this.quote(lines, i, depth);
    }
    if (ITEM.test(line) && depth < MAX_DEPTH) {
      return this.list(lines, i, depth);
    }
    if (this.isTable(lines, i)) {
      return this.table(lines, i);
    }
    return this.paragraph(lines, i);
  }

  code(lines, i, match) {
    const closes = new RegExp(`^ {0,3}${match[1][0]}{${match[1].length},}\\s*$`);
    let next = i + 1;
    while (next < lines.length && !closes.test(this.text(lines[next]))) {
      ++next;
    }
    const block = { type: "code", language: match[2], lines: lines.slice(i + 1, next) };
    return { block, next: Math.min(next + 1, lines.length) };
  }

  quote(lines, i, depth) {
    const inner = [];
    let match;
    for (; i < lines.length && (match = QUOTE.exec(this.text(lines[i]))); ++i) {
      inner.push({ start: lines[i].start + match[0].length, end: lines[i].end });
    }
    return { block: { type: "quote", blocks: this.blocks(inner, depth + 1) }, next: i };
  }

  list(lines, i, depth) {
    const first = ITEM.exec(this.text(lines[i]));
    const isOrdered = /\d/.test(first[2]);
    const block = { type: isOrdered ? "ol" : "ul", from: parseInt(first[2], 10) || 1, items: [] };
    while (i < lines.length) {
      const match = ITEM.exec(this.text(lines[i]));
      if (!match || match[1].length > first[1].length + 1 || /\d/.test(match[2]) !== isOrdered) {
        break;
      }
      const { inner, next } = this.item(lines, i, match);
      block.items.push(this.blocks(inner, depth + 1));
      i = next;
    }
    return { block, next: i };
  }

  // The lines of an item: those indented below its marker, and those that continue its paragraph.
  item(lines, i, match) {
    const indent = match[1].length + 2;
    const inner = [{ start: lines[i].start + match[0].length, end: lines[i].end }];
    let next = i + 1;
    for (let j = next; j < lines.length; ++j) {
      const line = this.text(lines[j]);
      if (line.trim() === "") {
        inner.push(lines[j]);
        continue;
      }
      const spaces = /^ */.exec(line)[0].length;
      const continues = j === next && spaces < indent && !this.startsBlock(line);
      if (spaces < indent && !continues) {
        break;
      }
      const cut = Math.min(spaces, match[0].length);
      inner.push({ start: lines[j].start + cut, end: lines[j].end });
      next = j + 1;
    }
    return { inner, next: this.afterBlank(lines, next) };
  }

  // The next line if it is an item after blank lines: a list may have space between its items.
  afterBlank(lines, i) {
    let next = i;
    while (next < lines.length && this.text(lines[next]).trim() === "") {
      ++next;
    }
    return next < lines.length && ITEM.test(this.text(lines[next])) ? next : i;
  }

  startsBlock(line) {
    return [FENCE, HEADING, RULE, QUOTE, ITEM].some(pattern => pattern.test(line));
  }

  isTable(lines, i) {
    return i + 1 < lines.length && this.text(lines[i]).includes("|") &&
      this.text(lines[i + 1]).includes("|") && TABLE_RULE.test(this.text(lines[i + 1]));
  }

  table(lines, i) {
    const rows = [this.cells(lines[i])];
    let next = i + 2;
    for (; next < lines.length && this.text(lines[next]).includes("|"); ++next) {
      rows.push(this.cells(lines[next]).slice(0, rows[0].length));
    }
    return { block: { type: "table", rows }, next };
  }

  // Ranges between the bars.
  cells(line) {
    const text = this.text(line);
    const cells = [];
    let start = /^ *\|?/.exec(text)[0].length;
    for (let i = start; i <= text.length; ++i) {
      if (i === text.length ? text.slice(start).trim() !== "" : text[i] === "|" && text[i - 1] !== "\\") {
        cells.push({ start: line.start + start, end: line.start + i });
        start = i + 1;
      }
    }
    return cells;
  }

  paragraph(lines, i) {
    let next = i + 1;
    while (next < lines.length && this.text(lines[next]).trim() !== "" &&
           !this.startsBlock(this.text(lines[next])) && !this.isTable(lines, next)) {
      ++next;
    }
    return { block: { type: "paragraph", lines: lines.slice(i, next) }, next };
  }
}
