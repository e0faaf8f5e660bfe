// A small chart of the last two minutes, drawn as SVG.
import { el, svg } from "./dom.js";

const N_VALUES = 120;
const WIDTH = 240;
const HEIGHT = 60;

export class Chart {
  // `format(value)` writes a value; `top` is the least value at the upper edge.
  constructor({ title, series, format, top }) {
    this.title = title;
    this.format = format;
    this.top = top;
    this.series = series.map((name, i) => ({
      name,
      values: [],
      line: svg("polyline", { class: `series-${i}`, "vector-effect": "non-scaling-stroke" }),
    }));
    this.value = el("output", { class: "value" });
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
      ...this.series.map(one => one.line));
    this.scale = el("span", { class: "scale", "aria-hidden": "true" });  // the picture's label says it too
    this.node = el("figure", {}, el("figcaption", {}, title, " ", this.value), this.scale, this.picture);
  }

  // One value for each series; null where there is none.
  add(values) {
    this.series.forEach((one, i) => {
      one.values.push(values[i]);
      one.values.splice(0, one.values.length - N_VALUES);
    });
    this.draw();
  }

  draw() {
    const all = this.series.flatMap(one => one.values).filter(value => value !== null);
    const top = Math.max(this.top, ...all);
    for (const one of this.series) {
      const from = N_VALUES - one.values.length;
      one.line.setAttribute("points", one.values
        .map((value, i) => value === null ? "" : `${point(from + i)},${(HEIGHT - 2) * (1 - value / top) + 1}`)
        .join(" "));
    }
    const texts = this.series.map(one => {
      const last = one.values.at(-1);
      const text = last === null || last === undefined ? "–" : this.format(last);
      return one.name ? `${text} ${one.name}` : text;
    });
    this.value.textContent = texts.join(", ");
    this.scale.textContent = this.format(top);
    this.picture.setAttribute("aria-label", `${this.title}: ${texts.join(", ")}; up to ${this.format(top)}`);
  }
}

const point = i => (i * WIDTH / (N_VALUES - 1)).toFixed(1);
