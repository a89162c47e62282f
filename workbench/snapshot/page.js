(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("live");
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const plain = (text, most) => {
    const flat = text.replace(/\s+/g, " ").trim(), letters = Array.from(flat);
    const cut = letters.length <= most ? flat : "\u2026" + letters.slice(1 - most).join("");
    return cut.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;");
  };
  const named = (value) => {
    if (typeof value === "string") {
      return value.replace(/\u27e6([a-z0-9-]+)\u27e7/g, (all, id) => {
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
      if (/^[xy]axis\d*$/.test(key)) out[key] = {gridcolor: line, linecolor: line, automargin: true, ...out[key]};
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
    const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
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
