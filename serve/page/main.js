// Puts the page together.
import { getJson } from "./api.js";
import { Chat } from "./chat.js";
import { byId } from "./dom.js";
import { ServerView } from "./server.js";
import { Settings } from "./settings.js";
import { Sidebar } from "./sidebar.js";
import { legend } from "./tokens.js";

const TABS = ["chat", "server"];

async function askServer() {
  try {
    const props = await getJson("props");
    byId("model").textContent = props.model_alias;
    settings.showDefaults(props);
    chat.notify("");
  } catch (error) {
    chat.notify(error.message);
  }
}

function drawDecisions() {
  server.drawDecisions(chat.conversation?.messages.findLast(message => message.decisions));
}

function showTab(name) {
  for (const tab of TABS) {
    const isShown = tab === name;
    byId(tab).hidden = !isShown;
    byId(`tab-${tab}`).setAttribute("aria-selected", String(isShown));
    byId(`tab-${tab}`).tabIndex = isShown ? 0 : -1;
  }
  server.show(name === "server");
  drawDecisions();
}

function showTheme() {
  const isDark = document.documentElement.dataset.theme === "dark";
  byId("theme").setAttribute("aria-pressed", String(isDark));
}

const settings = new Settings(() => askServer());
const server = new ServerView();
const chat = new Chat(settings, () => {
  sidebar.draw();
  drawDecisions();
});
const sidebar = new Sidebar({
  onOpen: conversation => {
    chat.open(conversation);
    drawDecisions();
  },
  onDelete: conversation => chat.running.get(conversation.id)?.controller.abort(),
  isAnswered: conversation => chat.running.has(conversation.id),
});

for (const [i, name] of TABS.entries()) {
  const tab = byId(`tab-${name}`);
  tab.addEventListener("click", () => showTab(name));
  tab.addEventListener("keydown", event => {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const other = TABS[(i + 1) % TABS.length];
      showTab(other);
      byId(`tab-${other}`).focus();
    }
  });
}

byId("legend").append(...legend());
byId("colours").addEventListener("change", event => {
  localStorage.setItem("knap.colours", event.target.checked ? "1" : "");
  byId("legend").hidden = !event.target.checked;
  chat.showColours(event.target.checked);
});

byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("knap.theme", root.dataset.theme);
  showTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);

addEventListener("keydown", event => {
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    showTab("chat");
    sidebar.create();
  } else if (event.key === "Escape" && !byId("settings").open) {
    if (!chat.stop()) {
      sidebar.showOnPhone(false);
    }
  }
});

const hasColours = localStorage.getItem("knap.colours") === "1";
byId("colours").checked = hasColours;
byId("legend").hidden = !hasColours;
chat.hasColours = hasColours;
showTheme();
sidebar.openLast();
askServer();
