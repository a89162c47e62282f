"""The style and the script of `index.html`: constant, so that the page's policy can name their digests.

The script holds no text of any document. It finds names by the ids of the table's cells, puts them into the pictures as plain
text, and draws a picture when it comes into view. Without it the page reads from top to bottom, pictures left out.
"""

from __future__ import annotations

import re

from workbench.charts.layout import BLUE, LABELS, SKY, VERMILION
from workbench.records import Label

_CSS = """
:root{color-scheme:light dark;--fg:#16181d;--bg:#fff;--soft:#5b6270;--line:#d5d9e0;--card:#f6f7f9;--mark:#F0E44299;--link:BLUE}
@media (prefers-color-scheme:dark){:root:not([data-theme=light]){--fg:#e8eaee;--bg:#14161a;--soft:#a3abb8;--line:#343a44;
 --card:#1c1f25;--mark:#8a7f0099;--link:SKY}}
:root[data-theme=dark]{color-scheme:dark;--fg:#e8eaee;--bg:#14161a;--soft:#a3abb8;--line:#343a44;--card:#1c1f25;--mark:#8a7f0099;
 --link:SKY}
:root[data-theme=light]{color-scheme:light}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1rem 1.2rem 4rem;font:15px/1.5 system-ui,sans-serif;
 color:var(--fg);background:var(--bg)}
h1{font-size:1.5rem;margin:.4rem 0;overflow-wrap:anywhere}h2{font-size:1.2rem;margin:2.2rem 0 .4rem;overflow-wrap:anywhere}
h3{font-size:1rem;margin:1.2rem 0 .4rem}
a{color:var(--link)}
.soft{color:var(--soft);font-size:.87rem}
.note{white-space:pre-wrap;overflow-wrap:anywhere}
.bar{position:sticky;top:0;z-index:2;background:var(--bg);gap:.6rem;align-items:center;padding:.5rem 0;
 border-bottom:1px solid var(--line);flex-wrap:wrap}
.bar input{font:inherit;flex:1 1 14rem;min-width:8rem;padding:.3rem .6rem;border:1px solid var(--soft);border-radius:.4rem;
 color:inherit;background:var(--bg)}
button{font:inherit;color:inherit;background:none;border:1px solid var(--line);border-radius:.4rem;
 padding:.2rem .6rem;cursor:pointer}
button:hover{border-color:currentColor}
:focus-visible{outline:2px solid SKY;outline-offset:1px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.5rem 0;font-size:.9rem}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.plots{grid-template-columns:repeat(auto-fit,minmax(min(30rem,100%),1fr));gap:1rem;align-items:start}
figure{margin:0;min-width:0;border:1px solid var(--line);border-radius:.5rem;padding:.5rem}
figcaption{font-size:.85rem;color:var(--soft);padding:0 .2rem .3rem}
.plot{min-height:7rem}
article{border:1px solid var(--line);border-left:4px solid var(--line);border-radius:.5rem;padding:.5rem .8rem;margin:.6rem 0;
 background:var(--card);break-inside:avoid;overflow-wrap:anywhere}
article.exact{border-left-color:EXACT}article.semantic{border-left-color:SEMANTIC}article.hybrid{border-left-color:HYBRID}
article.strongest{border-left-color:STRONGEST}
article header{display:flex;gap:.7rem;flex-wrap:wrap;align-items:baseline}
article .where{font-weight:600;overflow-wrap:anywhere}
.text{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;margin:.4rem 0 0;font-size:.92rem}
mark{background:var(--mark);color:inherit;border-radius:.15em;padding:0 .06em;font-weight:600}
.wb-code{font-family:ui-monospace,monospace;font-size:.85em;border:1px dashed var(--soft);border-radius:.2em;padding:0 .15em}
.scroll{overflow-x:auto;max-height:34rem;overflow-y:auto;border:1px solid var(--line);border-radius:.5rem}
table{border-collapse:collapse;font-size:.86rem;width:100%}
th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
thead th{position:sticky;top:0;background:var(--card);white-space:nowrap}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
th button{border:0;padding:0;font-weight:600}
th[aria-sort=ascending] button::after{content:" \\2191"}th[aria-sort=descending] button::after{content:" \\2193"}
.dropped td{color:var(--soft)}
.warning{border-left:4px solid VERMILION;background:color-mix(in srgb,VERMILION 11%,transparent);padding:.4rem .7rem;
 border-radius:.3rem;margin:.4rem 0;overflow-wrap:anywhere}
.js{display:none}.live .bar{display:flex}.live .plots{display:grid}.live .nojs{display:none}
[hidden]{display:none!important}
@media print{.bar,.live .bar{display:none!important}body{max-width:none;padding:0;font-size:11px;color:#000;background:#fff}
 .scroll{max-height:none;overflow:visible;border:0}article{background:none}thead th{position:static}
 a{color:inherit;text-decoration:none}h2{break-before:page}h2.first{break-before:avoid}}
"""

_JS = """
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("live");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const plain = (text, most) => {
    const flat = text.replace(/\\s+/g, " ").trim(), letters = Array.from(flat);
    const cut = letters.length <= most ? flat : "\\u2026" + letters.slice(1 - most).join("");
    return cut.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\\$/g, "&#36;");
  };
  const named = (value) => {
    if (typeof value === "string") {
      return value.replace(/\\u27e6([a-z0-9-]+)\\u27e7/g, (all, id) => {
        const cell = document.getElementById(id);
        return cell ? plain(cell.textContent, 26) : "";
      });
    }
    if (Array.isArray(value)) return value.map(named);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, named(v)]));
    return value;
  };
  const themed = (layout) => {
    const ink = dark() ? "#e8eaee" : "#16181d", line = dark() ? "#343a44" : "#d5d9e0";
    const out = {...layout, font: {...(layout.font || {}), color: ink}};
    for (const key of Object.keys(out)) {
      if (/^[xy]axis\\d*$/.test(key)) out[key] = {gridcolor: line, linecolor: line, automargin: true, ...out[key]};
    }
    return out;
  };
  const drawn = new Map();
  const draw = (plot) => {
    if (drawn.has(plot) || !window.Plotly) return;
    const figure = named(JSON.parse(document.getElementById(plot.dataset.figure).textContent));
    drawn.set(plot, figure);
    Plotly.newPlot(plot, figure.data, themed(figure.layout), {displayModeBar: false, responsive: true})
      .then(() => { plot.dataset.live = "yes"; });
  };
  const plots = Array.from(document.querySelectorAll(".plot"));
  const watch = new IntersectionObserver((seen) => {
    for (const entry of seen) if (entry.isIntersecting) { watch.unobserve(entry.target); draw(entry.target); }
  }, {rootMargin: "400px"});
  plots.forEach((plot) => watch.observe(plot));
  const again = () => drawn.forEach((figure, plot) => Plotly.relayout(plot, themed(figure.layout)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  window.addEventListener("beforeprint", () => plots.forEach(draw));
  document.getElementById("theme").addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; again(); });
  document.getElementById("print").addEventListener("click", () => window.print());

  const box = document.getElementById("find"), told = document.getElementById("found");
  const rows = Array.from(document.querySelectorAll("article, tbody tr"));
  const words = rows.map((row) => row.textContent.toLowerCase());
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, at) => {
      row.hidden = !wanted.every((word) => words[at].includes(word));
      if (!row.hidden && row.tagName === "ARTICLE") shown += 1;
    });
    told.textContent = wanted.length ? shown + " passages" : "";
  });

  document.querySelectorAll("table.sortable").forEach((table) => {
    const body = table.tBodies[0];
    table.querySelectorAll("thead th").forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const first = head.classList.contains("n") && !head.classList.contains("rank") ? -1 : 1;
        const now = head.getAttribute("aria-sort");
        const way = now === null ? first : now === "ascending" ? -1 : 1;
        table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", way === 1 ? "ascending" : "descending");
        const key = (row) => {
          const cell = row.cells[column];
          if (!head.classList.contains("n")) return cell.textContent.toLowerCase();
          return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
        };
        Array.from(body.rows).map((row, at) => [key(row), at, row]).sort((a, b) => {
          if (a[0] === null || b[0] === null) return (a[0] === null) - (b[0] === null) || a[1] - b[1];
          return (a[0] < b[0] ? -way : a[0] > b[0] ? way : 0) || a[1] - b[1];
        }).forEach((entry) => body.append(entry[2]));
      });
    });
  });
})();
"""


def css() -> str:
    """The style sheet."""
    named = {
        "BLUE": BLUE, "SKY": SKY, "VERMILION": VERMILION, "EXACT": LABELS[Label.EXACT],
        "SEMANTIC": LABELS[Label.SEMANTIC], "HYBRID": LABELS[Label.HYBRID], "STRONGEST": LABELS[Label.STRONGEST],
    }  # fmt: skip
    text = _CSS.strip()
    for name, colour in named.items():
        text = text.replace(name, colour)
    return text


def script() -> str:
    """The page's own script."""
    return _JS.strip()


def plotly() -> str:
    """plotly.js, once for the whole page."""
    import plotly.offline

    return str(plotly.offline.get_plotlyjs())


def unwanted_styles(source: str) -> tuple[str, ...]:
    """Ids of the style elements that a bundled map library adds unless an element has the id: the page has no maps."""
    return tuple(dict.fromkeys(re.findall(r'getElementById\("([0-9a-f]{64})"\)', source)))
