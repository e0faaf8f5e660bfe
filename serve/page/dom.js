// Makes elements. Strings become text nodes: nothing that a model writes is ever read as HTML.

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      node.addEventListener(name, value);
    } else if (value === true) {
      node.setAttribute(name, "");
    } else if (value !== false && value !== undefined) {
      node.setAttribute(name, value);
    }
  }
  node.append(...children);
  return node;
}

// el("button", {class: "icon", click: () => ...}, "Text", child): functions are event listeners.
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

export const byId = id => document.getElementById(id);

// Pages that were not loaded from this machine or over TLS have no clipboard.
export async function copyText(text) {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text);
  }
  const area = el("textarea", { class: "hidden-label", readonly: true });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
