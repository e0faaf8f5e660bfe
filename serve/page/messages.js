// Draws messages.
import { comparisonText, figuresText } from "./answers.js";
import { copyText, el } from "./dom.js";
import { drawMarkdown } from "./markdown.js";
import { colouredLeaf } from "./tokens.js";

const NAMES = { user: "You", assistant: "Model" };
const NOTES = {
  length: "The answer has reached its limit.",
  stopped: "Stopped.",
  failed: "The answer was not completed.",
};

// One message on the page. `actions` are called with the message: edit, regenerate, compare.
export class MessageView {
  constructor(message, actions) {
    this.message = message;
    this.text = el("div", { class: "text" });
    this.reasoningText = el("div", { class: "text" });
    this.reasoning = el("details", { class: "reasoning" }, el("summary", {}, "Thoughts"), this.reasoningText);
    this.foot = el("p", { class: "foot" });
    this.copy = this.button("Copy", () => copyText(message.content), "Copy the message");
    this.edit = this.button("Edit", () => actions.edit(message), "Edit and send again");
    this.again = this.button("Regenerate", () => actions.regenerate(message));
    this.compare = this.button("Compare with plain decoding", () => actions.compare(message));
    this.buttons = el("div", { class: "buttons" });
    this.node = el("article", { class: `message ${message.role}`, "aria-label": NAMES[message.role] },
      el("h2", {}, NAMES[message.role]), ...(message.role === "assistant" ? [this.reasoning] : []),
      this.text, this.foot, this.buttons);
  }

  button(name, click, title) {
    return el("button", { class: "small", click, title }, name);
  }

  // `state`: isLast (of its role), isRunning (the answer grows), isComparing, hasColours.
  draw(state) {
    const { message } = this;
    const pieces = state.hasColours && message.pieces ? message.pieces : [];
    this.drawText(this.text, message.content, pieces, state.hasColours);
    this.reasoning.hidden = !message.reasoning;
    if (message.reasoning) {
      this.drawText(this.reasoningText, message.reasoning, [], false);
    }
    // Screen readers read the answer when it is complete, not every piece of it.
    this.node.setAttribute("aria-busy", String(state.isRunning));
    this.node.classList.toggle("running", state.isRunning);
    this.foot.textContent = state.isRunning ? "" : this.footText(state);
    this.drawButtons(state);
  }

  drawText(node, text, pieces, hasColours) {
    if (this.message.role === "user") {
      node.textContent = text;  // as typed
      return;
    }
    drawMarkdown(node, text, colouredLeaf(text, pieces), hasColours ? "coloured" : "plain");
  }

  footText(state) {
    const { message } = this;
    if (message.role === "user") {
      return "";
    }
    return [
      message.error || NOTES[message.finish] || (message.finish ? "" : NOTES.failed),
      message.figures ? `${figuresText(message.figures)}.` : "",
      state.isComparing ? "Decoding without drafts…" : "",
      message.comparison ? `${comparisonText(message.comparison)}.` : "",
    ].filter(Boolean).join(" ");
  }

  drawButtons(state) {
    const { message } = this;
    const isAnswer = message.role === "assistant";
    const isComplete = isAnswer && ["stop", "length"].includes(message.finish);
    const shown = state.isRunning ? [] : [
      this.copy,
      state.isLast && !state.isBusy && !isAnswer && this.edit,
      state.isLast && !state.isBusy && isAnswer && this.again,
      isComplete && !state.isBusy && message.figures?.strategy !== "autoregressive" && this.compare,
    ].filter(Boolean);
    if (shown.length !== this.buttons.children.length ||
        shown.some((one, i) => one !== this.buttons.children[i])) {
      this.buttons.replaceChildren(...shown);
    }
  }
}
