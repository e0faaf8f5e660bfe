// The open conversation: asks, stops, regenerates, edits and compares.
import { compareWithPlain, figuresText, fill, newAnswer } from "./answers.js";
import { retitle, save } from "./conversations.js";
import { byId, el } from "./dom.js";
import { MessageView } from "./messages.js";

const SAVE_MS = 1000;  // how often an answer under way is saved

export class Chat {
  // `onChange(conversation)` is called when a conversation was saved.
  constructor(settings, onChange) {
    this.settings = settings;
    this.onChange = onChange;
    this.running = new Map();  // from the id of a conversation to {answer, controller, isComparing}
    this.views = [];
    this.hasColours = false;
    this.list = byId("messages");
    this.question = byId("question");
    byId("composer").addEventListener("submit", event => {
      event.preventDefault();
      this.send();
    });
    this.question.addEventListener("keydown", event => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.send();
      }
    });
    this.question.addEventListener("input", () => this.fitQuestion());
    byId("stop").addEventListener("click", () => this.stop());
  }

  open(conversation) {
    this.conversation = conversation;
    this.edited = null;
    this.notify("");
    this.rebuild();
    this.list.scrollTop = this.list.scrollHeight;
  }

  get job() {
    return this.running.get(this.conversation.id);
  }

  // --- what the user does ---

  send() {
    const text = this.question.value.trim();
    if (text === "" || this.job) {
      return;
    }
    const { messages } = this.conversation;
    if (this.edited) {
      messages.length = messages.indexOf(this.edited);
      this.edited = null;
    }
    messages.push({ role: "user", content: text });
    this.setQuestion("");
    this.answer();
  }

  edit(message) {
    this.edited = message;
    this.setQuestion(message.content);
    this.notify("Sending replaces the last question. Esc leaves it as it is.");
    this.question.focus();
  }

  regenerate(message) {
    const { messages } = this.conversation;
    messages.length = messages.indexOf(message);
    this.answer();
  }

  // Stops the answer, or leaves the editing. True if there was something to stop.
  stop() {
    if (this.job) {
      this.job.controller.abort();
      return true;
    }
    if (this.edited) {
      this.edited = null;
      this.setQuestion("");
      this.notify("");
      return true;
    }
    return false;
  }

  showColours(hasColours) {
    this.hasColours = hasColours;
    this.draw();
  }

  // --- answers ---

  async answer() {
    const { conversation } = this;
    const messages = [...conversation.messages];
    const answer = newAnswer(this.settings.forAnswer());
    conversation.messages.push(answer);
    retitle(conversation);
    const job = this.begin(conversation, { answer });
    this.rebuild();
    this.list.scrollTop = this.list.scrollHeight;
    let savedAt = performance.now();
    try {
      await fill(answer, messages, job.controller.signal, () => {
        this.drawSoon(conversation);
        if (performance.now() - savedAt > SAVE_MS) {
          savedAt = performance.now();
          this.save(conversation);
        }
      });
    } catch (error) {
      const isStopped = job.controller.signal.aborted;
      answer.finish = isStopped ? "stopped" : "failed";
      answer.error = isStopped ? undefined : error.message;
    }
    this.end(conversation);
  }

  async compare(answer) {
    const { conversation } = this;
    const before = conversation.messages.slice(0, conversation.messages.indexOf(answer));
    const job = this.begin(conversation, { compared: answer });
    this.draw();
    try {
      answer.comparison = await compareWithPlain(answer, before, job.controller.signal);
    } catch (error) {
      answer.comparison = undefined;
      if (!job.controller.signal.aborted) {
        this.notify(error.message);
      }
    }
    this.end(conversation);
  }

  begin(conversation, job) {
    this.notify("");
    job.controller = new AbortController();
    this.running.set(conversation.id, job);
    conversation.changed = Date.now();
    this.save(conversation);
    return job;
  }

  end(conversation) {
    this.running.delete(conversation.id);
    this.save(conversation);
    if (conversation === this.conversation) {
      this.draw();
    }
  }

  save(conversation) {
    if (!save(conversation)) {
      this.notify("The browser's storage is full: delete a conversation to keep this one.");
    }
    this.onChange(conversation);
  }

  // --- drawing ---

  rebuild() {
    const actions = {
      edit: message => this.edit(message),
      regenerate: message => this.regenerate(message),
      compare: message => this.compare(message),
    };
    this.views = this.conversation.messages.map(message => new MessageView(message, actions));
    this.list.replaceChildren(...this.views.map(view => view.node));
    if (this.views.length === 0) {
      this.list.append(el("p", { class: "empty" }, "Ask something. The conversation stays in this browser."));
    }
    this.draw();
  }

  // Once a frame is enough, however fast the chunks come.
  drawSoon(conversation) {
    if (conversation === this.conversation && !this.isDrawing) {
      this.isDrawing = true;
      requestAnimationFrame(() => {
        this.isDrawing = false;
        this.draw();
      });
    }
  }

  draw() {
    const { job, list } = this;
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 60;
    const last = role => this.views.findLast(view => view.message.role === role);
    for (const view of this.views) {
      view.draw({
        isLast: view === last(view.message.role),
        isRunning: job?.answer === view.message,
        isComparing: job?.compared === view.message,
        isBusy: job !== undefined,
        hasColours: this.hasColours,
      });
    }
    if (isAtEnd) {
      list.scrollTop = list.scrollHeight;
    }
    byId("send").hidden = job !== undefined;
    byId("stop").hidden = job === undefined;
    const figures = job?.answer?.figures;
    byId("live").textContent = figures ? figuresText(figures) : job ? "Waiting for the server…" : "";
  }

  notify(text) {
    const notice = byId("notice");
    notice.textContent = text;
    notice.hidden = text === "";
  }

  setQuestion(text) {
    this.question.value = text;
    this.fitQuestion();
  }

  fitQuestion() {
    this.question.style.height = "auto";
    this.question.style.height = `${this.question.scrollHeight + 2}px`;
  }
}
