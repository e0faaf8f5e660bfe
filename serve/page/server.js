// The tab with the server's state. Asks once a second while it is visible.
import { getJson, getText } from "./api.js";
import { Chart } from "./chart.js";
import { byId, el } from "./dom.js";
import { between, parseMetrics } from "./metrics.js";

const POLL_MS = 1000;
const percent = value => `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;
const times = value => value > 0 ? `${value.toFixed(2)} ×` : "–";

export class ServerView {
  constructor() {
    this.charts = {
      speed: new Chart({ title: "Tokens per second", series: [""], format: value => value.toFixed(1), top: 10 }),
      requests: new Chart({ title: "Requests", series: ["running", "waiting"], format: String, top: 2 }),
      accepted: new Chart({ title: "Accepted share of drafts", series: [""], format: percent, top: 1 }),
      cache: new Chart({ title: "Cache in use", series: [""], format: percent, top: 1 }),
    };
    byId("charts").append(...Object.values(this.charts).map(chart => chart.node));
    this.refused = {};  // why the server does not answer a path; it is not asked again
  }

  show(isVisible) {
    clearTimeout(this.timer);
    this.isVisible = isVisible;
    this.last = null;  // a rate over the time while nobody looked would mean little
    if (isVisible) {
      this.poll();
    }
  }

  async poll() {
    if (!document.hidden) {
      await this.update();
    }
    clearTimeout(this.timer);
    if (this.isVisible) {
      this.timer = setTimeout(() => this.poll(), POLL_MS);
    }
  }

  async update() {
    const [metrics, slots] = await Promise.all([this.ask("metrics", getText), this.ask("slots", getJson)]);
    if (metrics !== null) {
      this.addMetrics({ at: performance.now(), read: parseMetrics(metrics) });
    }
    if (slots !== null) {
      this.drawSlots(slots);
    }
    byId("server-notice").textContent = Object.values(this.refused).join(" ") || this.trouble || "";
  }

  async ask(path, get) {
    if (this.refused[path]) {
      return null;
    }
    try {
      const answer = await get(path);
      this.trouble = "";
      return answer;
    } catch (error) {
      this.trouble = `No answer: ${error.message}`;
      if (error.status === 501) {
        this.refused[path] = `/${path}: ${error.message}.`;
      }
      return null;
    }
  }

  addMetrics(now) {
    const change = this.last ? between(this.last, now) : { tokensPerSecond: null, acceptedShare: null };
    this.last = now;
    this.charts.speed.add([change.tokensPerSecond]);
    this.charts.accepted.add([change.acceptedShare]);
    this.charts.requests.add([now.read("vllm:num_requests_running"), now.read("vllm:num_requests_waiting")]);
    this.charts.cache.add([now.read("vllm:kv_cache_usage_perc")]);
  }

  drawSlots(slots) {
    byId("slots").replaceChildren(table(
      ["session", "state", "prompt", "tokens", "strategy"],
      slots.map(slot => [
        slot.id,
        slot.is_processing ? "answering" : "idle",
        slot.is_processing ? `${slot.n_prompt_tokens_processed} of ${slot.n_prompt_tokens}` : "",
        slot.is_processing ? slot.n_decoded : "",
        slot.is_processing ? slot.strategy : "",
      ])));
  }

  // `answer` is the last one of the open conversation, if there is one.
  drawDecisions(answer) {
    const decisions = answer?.decisions || [];
    byId("decisions").replaceChildren(decisions.length === 0
      ? el("p", {}, "None: no answer yet, or a strategy that does not choose.")
      : table(["at token", "drafts from", "plan", "because", "predicted", "measured"],
        decisions.map(one => [one.token, one.source, one.plan || "–", one.reason,
          times(one.predicted), times(one.measured)])));
  }
}

function table(names, rows) {
  return el("table", {},
    el("thead", {}, el("tr", {}, ...names.map(name => el("th", { scope: "col" }, name)))),
    el("tbody", {}, ...rows.map(cells => el("tr", {}, ...cells.map(cell => el("td", {}, String(cell)))))));
}
