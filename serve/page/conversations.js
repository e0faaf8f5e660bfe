// The conversations, kept in this browser: one entry of localStorage each, so that two tabs do not
// overwrite each other's.
//
// A conversation is {id, title, named, changed, messages}. A message is {role, content}; an answer
// also has reasoning, pieces (tokens.js), finish, figures, decisions, settings and comparison.

const PREFIX = "knap.conversation.";

const isOurs = key => key !== null && key.startsWith(PREFIX);

export function loadAll() {
  const all = [];
  for (let i = 0; i < localStorage.length; ++i) {
    const key = localStorage.key(i);
    if (!isOurs(key)) {
      continue;
    }
    try {
      all.push(JSON.parse(localStorage.getItem(key)));
    } catch {
      localStorage.removeItem(key);  // damaged: nothing of it can be shown
    }
  }
  return all.sort((a, b) => b.changed - a.changed);
}

export function create() {
  const id = Date.now().toString(36) + Math.floor(Math.random() * 1e9).toString(36);
  return { id, title: "New conversation", named: false, changed: Date.now(), messages: [] };
}

// Titles come from the first question until the user gives one.
export function retitle(conversation) {
  const first = conversation.messages.find(message => message.role === "user");
  if (!conversation.named && first) {
    conversation.title = first.content.trim().replace(/\s+/g, " ").slice(0, 60) || "New conversation";
  }
}

// False when the browser's storage is full, even without the colours of other conversations. What was
// deleted stays so: an answer may still end after that.
export function save(conversation) {
  if (conversation.isDeleted) {
    return true;
  }
  const write = () => localStorage.setItem(PREFIX + conversation.id, JSON.stringify(conversation));
  try {
    write();
    return true;
  } catch {
    dropColours(conversation.id);
  }
  try {
    write();
    return true;
  } catch {
    return false;
  }
}

function dropColours(exceptId) {
  for (const other of loadAll()) {
    if (other.id !== exceptId) {
      for (const message of other.messages) {
        delete message.pieces;
        delete message.decisions;
      }
      localStorage.setItem(PREFIX + other.id, JSON.stringify(other));
    }
  }
}

export function remove(conversation) {
  conversation.isDeleted = true;
  localStorage.removeItem(PREFIX + conversation.id);
}

export function restore(conversation) {
  delete conversation.isDeleted;
  save(conversation);
}

// Calls back when another tab changes a conversation.
export function onForeignChange(callback) {
  addEventListener("storage", event => {
    if (isOurs(event.key)) {
      callback();
    }
  });
}

export const lastOpen = {
  get: () => sessionStorage.getItem("knap.open") || localStorage.getItem("knap.open"),
  set: id => {
    sessionStorage.setItem("knap.open", id);  // this tab's, which outlives a reload
    localStorage.setItem("knap.open", id);    // for new tabs
  },
};
