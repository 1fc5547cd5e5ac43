"use strict";
(() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);
  root.classList.add("js");

  // Numbers, written as the page writes them.
  const missing = "–", space = "\u00a0";
  const minus = (text) => text.replace("-", "−");
  const plus = (value, digits) => (value < 0 ? "" : "+") + value.toFixed(digits);
  const formats = {
    number: (v) => minus(v.toFixed(4)),
    signed: (v) => minus(plus(v, 4)),
    lift: (v) => minus(plus(v, 1)) + space + "%",
    percent: (v) => Number((100 * v).toPrecision(3)) + space + "%",
    count: (v) => minus(Math.round(v).toLocaleString("en-US")),
    short: (v) => {
      if (v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e5))
        return minus(v.toExponential(1).replace(/e([+-])(\d)$/, "e$10$2"));
      return minus(v.toFixed(v === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(v))))));
    },
  };
  const write = (value, style) => (value === null || value === undefined ? missing : formats[style](value));
  const interval = (low, high, style) => {
    if (low === null || high === null) return "";
    const unit = space + "%";
    const end = (v) => { const t = formats[style](v); return t.endsWith(unit) ? t.slice(0, -unit.length) : t; };
    return `[${end(low)},${space}${end(high)}]`;
  };

  // Light and dark: what the reader chose, else what the system says.
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const stored = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("safecf-theme");
      localStorage.setItem("safecf-theme", value);
    } catch { /* a page opened from disk may have no storage */ }
    return null;
  };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const paint = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`); };
  if (["light", "dark"].includes(stored())) root.dataset.theme = stored();
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    stored(root.dataset.theme);
    paint();
  });
  dark.addEventListener("change", paint);
  paint();

  // Read-outs: the point under the pointer, or moved with the arrow keys.
  const svgElement = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const scale = (text) => {
    const [low, high, start, end, log] = text.split(" ").map(Number);
    const map = log ? Math.log10 : (v) => v;
    return (value) => start + ((map(value) - map(low)) / (map(high) - map(low))) * (end - start);
  };
  const follow = (figure) => {
    const chart = JSON.parse(figure.dataset.chart).reduce((part, key) => part[key], data);
    const drawing = figure.querySelector(".drawing");
    const lead = figure.querySelector(".readout .at");
    const values = figure.querySelector(".readout ul");
    const entries = [...values.children];
    let place = chart.at;
    const plot = () => [...drawing.querySelectorAll("svg.plot")].find((each) => each.getClientRects().length);

    const read = (index) => {
      place = Math.max(0, Math.min(chart.x.length - 1, index));
      const x = chart.x[place];
      values.hidden = false;
      lead.textContent = chart.labels.length ? chart.labels[place] : chart.x_text.replace("{}", write(x, chart.x_format));
      chart.series.forEach((series, row) => {
        entries[row].querySelector(".value").textContent = write(series.y[place], chart.y_format);
        const ends = entries[row].querySelector(".ci");
        if (ends) ends.textContent = interval(series.low[place], series.high[place], chart.y_format);
      });
    };
    const clear = () => { for (const each of drawing.querySelectorAll(".cursor")) each.remove(); };
    const point = () => {
      clear();
      const svg = plot();
      if (!svg) return;
      const toX = scale(svg.dataset.x), toY = scale(svg.dataset.y);
      const [, , bottom, top] = svg.dataset.y.split(" ").map(Number);
      const at = toX(chart.x[place]);
      const cursor = svgElement("g", { class: "cursor", "aria-hidden": "true" });
      cursor.append(svgElement("line", { x1: at, x2: at, y1: top, y2: bottom }));
      for (const series of chart.series) {
        const value = series.y[place];
        const y = value === null ? NaN : toY(value);
        if (y >= top - 4 && y <= bottom + 4)
          cursor.append(svgElement("circle", { cx: at, cy: y, r: 5, class: `s${series.style % 8}` }));
      }
      svg.append(cursor);
    };
    const nearest = (event) => {
      const svg = plot();
      const box = svg.getBoundingClientRect();
      const toX = scale(svg.dataset.x);
      const wanted = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      let best = 0;
      chart.x.forEach((x, index) => {
        if (Math.abs(toX(x) - wanted) < Math.abs(toX(chart.x[best]) - wanted)) best = index;
      });
      return best;
    };
    const rest = () => {
      clear();
      read(chart.at);
      if (chart.rest) lead.textContent = chart.rest;
      values.hidden = Boolean(chart.rest);
    };

    drawing.tabIndex = 0;
    drawing.setAttribute("role", "group");
    drawing.setAttribute("aria-label", "Chart; the arrow keys move through its points");
    drawing.addEventListener("pointermove", (event) => { read(nearest(event)); point(); });
    drawing.addEventListener("pointerdown", (event) => { read(nearest(event)); point(); });
    drawing.addEventListener("pointerleave", rest);
    drawing.addEventListener("blur", rest);
    drawing.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: place - 1, ArrowRight: place + 1, PageDown: place - 10, PageUp: place + 10, Home: 0, End: chart.x.length - 1 };
      if (event.key === "Escape") return rest();
      if (!(event.key in moves)) return;
      event.preventDefault();
      read(moves[event.key]);
      point();
    });
    figure.querySelector(".readout").setAttribute("aria-live", "polite");
  };
  const followAll = (part) => { for (const figure of part.querySelectorAll("figure[data-chart]")) follow(figure); };
  followAll(document);

  // The other metrics are compressed; they are unpacked when the first of them is chosen.
  const choice = document.getElementById("metric");
  let unpacked = null;
  const unpack = () => unpacked ??= (async () => {
    const packed = atob(document.getElementById("more").textContent);
    const bytes = new Blob([Uint8Array.from(packed, (each) => each.charCodeAt(0))]);
    const more = await new Response(bytes.stream().pipeThrough(new DecompressionStream("gzip"))).json();
    Object.assign(data.panels, more.panels);
    document.querySelectorAll(".panel[hidden]").forEach((panel, place) => {
      panel.innerHTML = more.html[place];
      followAll(panel);
    });
  })();
  if (choice && "DecompressionStream" in window) {
    choice.addEventListener("change", async () => {
      await unpack();
      for (const panel of document.querySelectorAll(".panel")) panel.hidden = panel.dataset.metric !== choice.value;
    });
  } else if (choice) choice.parentElement.hidden = true;

  // Everything behind the page, as a file.
  document.getElementById("save").addEventListener("click", async () => {
    if (choice) await unpack();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(data, null, 1)], { type: "application/json" }));
    link.download = "report.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
})();
