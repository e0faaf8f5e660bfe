// What the user has set. An empty field stands for the server's default, and is not sent.
import { apiKey } from "./api.js";
import { byId, el } from "./dom.js";

const STORE = "knap.settings";
const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "seed", "max_tokens"];
const NAME_ON_SERVER = { max_tokens: "n_predict" };

function load() {
  try {
    return JSON.parse(localStorage.getItem(STORE)) || {};
  } catch {
    return {};
  }
}

export class Settings {
  // `onKey` is called when the key has changed.
  constructor(onKey) {
    this.values = load();
    this.form = byId("settings-form");
    this.fields = this.form.elements;
    this.dialog = byId("settings");
    byId("settings-open").addEventListener("click", () => this.dialog.showModal());
    byId("settings-reset").addEventListener("click", () => this.change({}));
    this.form.addEventListener("input", () => this.read());
    this.fields.key.addEventListener("change", () => {
      apiKey.set(this.fields.key.value);
      onKey();
    });
    this.fields.key.value = apiKey.get();
    this.showStrategies([]);
    this.show();
  }

  // Shows the server's defaults in the empty fields. `props` is the answer of GET /props.
  showDefaults(props) {
    const { params } = props.default_generation_settings;
    for (const name of NUMBERS.filter(one => one !== "seed")) {
      const value = params[NAME_ON_SERVER[name] || name];
      this.fields[name].placeholder = value < 0 ? "no limit" : String(Number(value.toPrecision(6)));
    }
    this.showStrategies(props.knap.strategies, props.knap.strategy);
    this.show();
  }

  showStrategies(names, standard) {
    this.fields.strategy.replaceChildren(
      el("option", { value: "" }, standard ? `${standard} (default)` : "default"),
      ...names.filter(name => name !== standard).map(name => el("option", { value: name }, name)));
  }

  show() {
    for (const name of ["system", "strategy", ...NUMBERS]) {
      this.fields[name].value = this.values[name] ?? "";
    }
  }

  read() {
    const values = {};
    for (const name of ["system", "strategy", ...NUMBERS]) {
      const field = this.fields[name];
      if (field.value !== "" && field.validity.valid) {
        values[name] = NUMBERS.includes(name) ? field.valueAsNumber : field.value;
      }
    }
    this.store(values);
  }

  change(values) {
    this.store(values);
    this.show();
  }

  store(values) {
    this.values = values;
    localStorage.setItem(STORE, JSON.stringify(values));
  }

  // The settings of one answer. The seed is chosen here, so that the answer can be made again.
  forAnswer() {
    return { seed: Math.floor(Math.random() * 2 ** 31), ...this.values };
  }
}

// The request for an answer to `messages` with the settings of forAnswer().
export function requestBody(messages, { system, strategy, ...sampling }) {
  const asked = messages.map(({ role, content }) => ({ role, content }));
  return {
    ...sampling,
    messages: system ? [{ role: "system", content: system }, ...asked] : asked,
    stream: true,
    stream_options: { include_usage: true },
    timings_per_token: true,
    knap: { rounds: true, decisions: true, ...(strategy && { strategy }) },
  };
}
