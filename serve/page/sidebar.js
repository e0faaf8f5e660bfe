// The list of conversations: open, rename, delete, undo.
import * as store from "./conversations.js";
import { byId, el } from "./dom.js";

export class Sidebar {
  // `onOpen(conversation)` shows a conversation, `onDelete(conversation)` ends its answer, and
  // `isAnswered(conversation)` says whether one is under way.
  constructor({ onOpen, onDelete, isAnswered }) {
    this.onOpen = onOpen;
    this.onDelete = onDelete;
    this.isAnswered = isAnswered;
    this.list = byId("conversations");
    this.all = store.loadAll();
    byId("new").addEventListener("click", () => this.create());
    byId("menu").addEventListener("click", () => this.showOnPhone(!this.isShownOnPhone));
    store.onForeignChange(() => this.reload());
  }

  openLast() {
    const id = store.lastOpen.get();
    const found = this.all.find(one => one.id === id) || this.all[0];
    if (found) {
      this.open(found);
    } else {
      this.create();
    }
  }

  // An empty conversation is not saved, and there is at most one.
  create() {
    let conversation = this.all.find(one => one.messages.length === 0);
    if (!conversation) {
      conversation = store.create();
      this.all.unshift(conversation);
    }
    this.open(conversation);
    byId("question").focus();
  }

  open(conversation) {
    this.current = conversation;
    store.lastOpen.set(conversation.id);
    this.showOnPhone(false);
    this.onOpen(conversation);
    this.draw();
  }

  // Takes over what another tab has changed, except conversations that this tab is busy with.
  reload() {
    const own = new Map(this.all.filter(one => this.isOwn(one)).map(one => [one.id, one]));
    const stored = store.loadAll().map(one => own.get(one.id) || one);
    this.all = [...[...own.values()].filter(one => !stored.includes(one)), ...stored];
    this.draw();
  }

  isOwn(conversation) {
    return conversation === this.current || conversation.messages.length === 0 || this.isAnswered(conversation);
  }

  rename(conversation, item) {
    const input = el("input", { value: conversation.title, "aria-label": "Name of the conversation" });
    const finish = isKept => {
      if (isKept && input.value.trim() !== "") {
        conversation.title = input.value.trim();
        conversation.named = true;
        store.save(conversation);
      }
      this.draw();
      this.focus(conversation);
    };
    input.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === "Escape") {
        event.stopPropagation();
        finish(event.key === "Enter");
      }
    });
    item.replaceChildren(input, el("button", { class: "small", click: () => finish(true) }, "Save"));
    input.select();
  }

  remove(conversation) {
    this.onDelete(conversation);
    store.remove(conversation);
    this.all = this.all.filter(one => one !== conversation);
    this.deleted = conversation;
    if (conversation === this.current) {
      this.openLast();
    }
    this.draw();
    this.list.querySelector(".undo")?.focus();
  }

  restore() {
    const conversation = this.deleted;
    this.deleted = null;
    this.all.unshift(conversation);
    store.restore(conversation);
    this.open(conversation);
    this.focus(conversation);
  }

  focus(conversation) {
    this.list.querySelector(`[data-id="${conversation.id}"] .open`)?.focus();
  }

  draw() {
    const items = this.all.map(conversation => this.item(conversation));
    if (this.deleted) {
      items.unshift(el("li", {},
        el("button", { class: "undo", click: () => this.restore() }, `Undo: delete “${this.deleted.title}”`)));
    }
    this.list.replaceChildren(...items);
  }

  item(conversation) {
    const isCurrent = conversation === this.current;
    const item = el("li", { "data-id": conversation.id, class: isCurrent ? "current" : "" },
      el("button", { class: "open", "aria-current": isCurrent ? "true" : undefined,
        click: () => this.open(conversation) }, conversation.title),
      el("button", { class: "icon", "aria-label": `Rename ${conversation.title}`,
        click: () => this.rename(conversation, item) }, "✎"),
      el("button", { class: "icon", "aria-label": `Delete ${conversation.title}`,
        click: () => this.remove(conversation) }, "✕"));
    return item;
  }

  // On a phone the list lies over the chat, and is shown by a button.
  showOnPhone(isShown) {
    this.isShownOnPhone = isShown;
    byId("sidebar").classList.toggle("shown", isShown);
    byId("menu").setAttribute("aria-expanded", String(isShown));
  }
}
