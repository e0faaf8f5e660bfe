// Where the tokens of an answer came from.
//
// Pieces are [end, kind, plan] in the order of the text: a piece covers the text from the end of the
// piece before it up to its own end.
import { el } from "./dom.js";

export const KINDS = {
  copied: "copied from the text so far",
  drafted: "drafted by a plan",
  forced: "forced by a grammar",
  plain: "chosen by the whole model",
};

const KIND_OF_SOURCE = { copy: "copied", plan: "drafted", cascade: "drafted", forced: "forced" };
const SEARCH = 32;  // characters in which the next token that fits is looked for

export class TokenMap {
  constructor() {
    this.pieces = [];
    this.waiting = [];  // tokens whose text has not come yet
    this.end = 0;
  }

  // `round` is a chunk's `knap`, `text` the whole answer so far.
  add(round, text) {
    for (const token of round.tokens) {
      const kind = token.drafted ? KIND_OF_SOURCE[round.source] || "drafted" : "plain";
      this.waiting.push({ text: token.text, kind, plan: token.drafted ? round.plan : "" });
    }
    while (this.waiting.length > 0 && this.place(text)) {}
  }

  place(text) {
    const [first] = this.waiting;
    if (text.startsWith(first.text, this.end)) {
      return this.take(1, this.end + first.text.length);
    }
    // A token may be a part of a character, and its text then differs: it ends where one of the next
    // ones begins.
    for (let i = 1; i < Math.min(this.waiting.length, 5); ++i) {
      const at = this.waiting[i].text ? text.indexOf(this.waiting[i].text, this.end) : -1;
      if (at >= 0 && at - this.end <= SEARCH) {
        return this.take(i, at);
      }
    }
    return false;
  }

  take(n, end) {
    const { kind, plan } = this.waiting[0];
    this.waiting.splice(0, n);
    this.pieces.push([end, kind, plan]);
    this.end = end;
    return true;
  }
}

const titleOf = ([, kind, plan]) => KINDS[kind] + (plan ? `: ${plan}` : "");

// A function that appends the text from `start` to `end` to an element, a span for each token.
export function colouredLeaf(text, pieces) {
  return (parent, start, end) => {
    let at = start;
    for (let i = firstAfter(pieces, start); i < pieces.length && at < end; ++i) {
      const stop = Math.min(pieces[i][0], end);
      parent.append(el("span", { class: `token ${pieces[i][1]}`, title: titleOf(pieces[i]) },
        text.slice(at, stop)));
      at = stop;
    }
    parent.append(text.slice(at, end));
  };
}

// The first piece that ends behind `start`.
function firstAfter(pieces, start) {
  let low = 0;
  let high = pieces.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pieces[middle][0] <= start) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

export function legend() {
  return Object.entries(KINDS).map(([kind, meaning]) =>
    el("li", {}, el("span", { class: `token ${kind}` }, meaning)));
}
