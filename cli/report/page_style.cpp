// The style of a benchmark page, and the script that shows the tooltips of its figures.
#include "cli/report/page_parts.h"

namespace knap {

std::string_view page_style() {
    // Figures are drawn in black on white. Rules for those two colours adapt them to the page's
    // theme.
    return R"css(
:root { --ground: #f5f6f8; --card: #ffffff; --ink: #1b1f26; --soft: #5d6674; --line: #dfe3e8;
  --accent: #e4572e; --warn: #b45309; --warn-ground: #fef3c7; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #12151a; --card: #1b2028; --ink: #e7eaef; --soft: #9aa4b2; --line: #303743;
    --accent: #ff7a52; --warn: #fcd34d; --warn-ground: #3b2f0b; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--ground); color: var(--ink); line-height: 1.5;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
header, main { max-width: 1320px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 36px; }
h1 { margin: 0; font-size: clamp(1.6rem, 5vw, 2.4rem); line-height: 1.15; letter-spacing: -0.02em;
  overflow-wrap: anywhere; }
h2 { margin: 44px 0 14px; font-size: 1.35rem; letter-spacing: -0.01em; }
h3 { margin: 0; font-size: 1rem; }
header p { margin: 6px 0 0; color: var(--soft); overflow-wrap: anywhere; }
nav { position: sticky; top: 0; z-index: 2; margin-top: 22px; padding: 8px 20px; display: flex;
  gap: 18px; overflow-x: auto; justify-content: safe center; background: var(--ground);
  border-bottom: 1px solid var(--line); }
nav a { color: var(--soft); text-decoration: none; white-space: nowrap; font-size: 0.92rem; }
nav a:hover, nav a:focus { color: var(--accent); }
section { scroll-margin-top: 44px; }
.badge { display: inline-block; padding: 1px 9px; border-radius: 999px; font-size: 0.78rem;
  font-weight: 600; color: var(--warn); background: var(--warn-ground); white-space: nowrap; }
.tiles { display: grid; gap: 14px; margin-top: 26px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); }
.tile, figure, .card { background: var(--card); border: 1px solid var(--line);
  border-radius: 14px; padding: 16px 18px; }
.tile h3 { overflow-wrap: anywhere; }
.numbers { display: flex; flex-wrap: wrap; gap: 8px 36px; margin-top: 8px; color: var(--soft);
  font-size: 0.88rem; }
.numbers b { display: block; color: var(--ink); font-size: 2.1rem; line-height: 1.15;
  letter-spacing: -0.03em; }
header p + h1 { margin-top: 18px; }
.figures { columns: 3 380px; column-gap: 16px; }
figure { margin: 0 0 16px; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; max-width: 560px; margin: 8px auto 0;
  pointer-events: none; }
figure svg text { font-family: inherit; }
figure svg [fill="black"] { fill: var(--ink); }
figure svg [stroke="black"] { stroke: var(--soft); }
figure svg [color="black"] { color: var(--soft); }
figure svg .gridline { stroke: var(--line); stroke-dasharray: none; }
figure svg [onmousemove] { pointer-events: all; cursor: pointer; }
figcaption { color: var(--soft); font-size: 0.88rem; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 8px 0 0; padding: 0;
  list-style: none; font-size: 0.85rem; }
.legend li { overflow-wrap: anywhere; }
.mark { margin-right: 5px; }
.scroll { overflow: auto; max-height: 70vh; border: 1px solid var(--line); border-radius: 14px;
  background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: 0.88rem; }
th, td { padding: 7px 12px; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
th { position: sticky; top: 0; background: var(--card); color: var(--soft); font-weight: 600; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
tbody tr:last-child td { border-bottom: 0; }
td small { color: var(--soft); }
.cards { display: grid; gap: 16px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); }
.card { min-width: 0; }
dl { display: grid; grid-template-columns: minmax(0, max-content) minmax(0, 1fr); gap: 3px 14px;
  margin: 10px 0; font-size: 0.88rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
pre { margin: 10px 0 0; padding: 12px 14px; border-radius: 10px; background: var(--ground);
  white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.84rem; }
#tip { position: fixed; z-index: 3; max-width: min(320px, 90vw); padding: 6px 10px;
  border-radius: 8px; background: var(--ink); color: var(--ground); font-size: 0.84rem;
  pointer-events: none; }
main { padding-bottom: 60px; }
@media (max-width: 520px) {
  header, main { padding-left: 10px; padding-right: 10px; }
  .tile, figure, .card { padding: 12px; } }
@media print { nav { display: none; } .scroll { max-height: none; overflow: visible; } }
)css";
}

std::string_view page_script() {
    // gnuplot's figures call an object of this name to show tooltips.
    return R"js(
"use strict";
const gnuplot_svg = {
  showHypertext(event, text) {
    const tip = document.getElementById("tip");
    tip.textContent = text;
    tip.hidden = false;
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const above = event.clientY - tip.offsetHeight - 12;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = (above > 8 ? above : event.clientY + 18) + "px";
  },
  hideHypertext() { document.getElementById("tip").hidden = true; },
};
)js";
}

}  // namespace knap
