"use strict";
// The tail curves: the mean of a metric over the worst-off users, for every share of them.
(() => {
  const size = { wide: [760, 320], narrow: [360, 270] }, edge = { left: 52, right: 16, top: 18, bottom: 46 };
  const svg = (tag, attributes = {}, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  const steps = (high) => {
    const raw = high / 5, unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((each) => each * unit).find((each) => each >= raw);
    return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, n) => n * step);
  };

  window.safecf.drawTail = (about) => {
    const { byId, make, percent, capital, counted } = window.safecf;
    const { levels, metrics, users, roles, verdicts } = about.evaluation;
    const roleOf = (name) => Object.keys(roles).find((role) => roles[role] === name);
    const choice = byId("metric"), curve = byId("curve"), readout = byId("readout");
    let at = levels.length - 1;

    // The served models if they are in the evaluation, else all; their order there is kept.
    const series = () => {
      const all = Object.entries(metrics[choice.value]).map(([name, values]) => ({ name, values, role: roleOf(name) ?? "other" }));
      const served = all.filter((each) => each.role !== "other").sort((a, b) => (a.role < b.role ? 1 : -1));
      return served.length ? served : all;
    };
    const whom = (level) => level === 1 ? "all users" : `the worst-off ${percent(level)}`;
    const read = () => {
      readout.replaceChildren(make("span", {}, `${capital(whom(levels[at]))}:`),
        ...series().map((each) => make("span", { class: `${each.role}-colour` }, make("b", {}, each.name), ` ${each.values[at].toFixed(4)}`)));
      curve.querySelectorAll(".cursor").forEach((line) => {
        const x = line.dataset.places.split(" ")[at];
        line.setAttribute("x1", x); line.setAttribute("x2", x);
      });
    };
    const says = () => {
      const whole = (text) => text.replace(/ (?=%)|(?<=\[[^\]]*) /g, "\u00a0");  // numbers stay on one line
      const sentences = (verdicts[choice.value] ?? []).map((each) => `${capital(whole(each))}. `);
      byId("tail-says").textContent = `${sentences.join("")}Each point is the mean ${choice.value} of a share of ${counted(users, "test user")}, the worst-off first.`;
    };
    const draw = () => {
      const [width, height] = matchMedia("(max-width: 760px)").matches ? size.narrow : size.wide;
      const high = Math.max(1e-6, ...series().flatMap((each) => each.values)) * 1.06;
      const x = (level) => edge.left + ((level - levels[0]) / (1 - levels[0] || 1)) * (width - edge.left - edge.right);
      const y = (value) => height - edge.bottom - (value / high) * (height - edge.top - edge.bottom);
      const plot = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${choice.value} of the worst-off users` });
      for (const value of steps(high)) {
        plot.append(svg("line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: y(value), y2: y(value) }));
        plot.append(svg("text", { x: edge.left - 10, y: y(value) + 4, "text-anchor": "end" }, Number(value.toPrecision(3)).toString()));
      }
      levels.forEach((level, index) => {
        if (width < 500 && index % 3 && level !== 1) return;
        plot.append(svg("text", { x: x(level), y: height - edge.bottom + 20, "text-anchor": level === 1 ? "end" : "middle" }, level === 1 ? "all" : percent(level)));
      });
      plot.append(svg("text", { class: "axis-name", x: edge.left + (width - edge.left - edge.right) / 2, y: height - 6, "text-anchor": "middle" }, "share of users, the worst-off first"));
      plot.append(svg("line", { class: "cursor", y1: edge.top, y2: height - edge.bottom, "data-places": levels.map(x).join(" ") }));
      for (const each of [...series()].reverse()) {
        const group = svg("g", { class: `${each.role}-colour` });
        group.append(svg("path", { class: `line ${each.role}`, d: each.values.map((value, index) => `${index ? "L" : "M"}${x(levels[index])} ${y(value)}`).join("") }));
        each.values.forEach((value, index) => group.append(svg("circle", { class: `dot ${each.role}`, cx: x(levels[index]), cy: y(value), r: 3.5 })));
        plot.append(group);
      }
      curve.replaceChildren(plot);
      read();
      says();
    };
    const nearest = (event) => {
      const box = curve.getBoundingClientRect(), share = (event.clientX - box.left) / box.width;
      const [width] = matchMedia("(max-width: 760px)").matches ? size.narrow : size.wide;
      const level = levels[0] + ((share * width - edge.left) / (width - edge.left - edge.right)) * (1 - levels[0]);
      at = levels.reduce((best, each, index) => Math.abs(each - level) < Math.abs(levels[best] - level) ? index : best, 0);
      read();
    };
    curve.addEventListener("pointermove", nearest);
    curve.addEventListener("pointerdown", nearest);
    curve.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: levels.length - 1 };
      if (!(event.key in moves)) return;
      event.preventDefault();
      at = Math.max(0, Math.min(levels.length - 1, moves[event.key]));
      read();
    });
    choice.replaceChildren(...Object.keys(metrics).map((metric) => make("option", { value: metric }, metric)));
    choice.addEventListener("change", draw);
    matchMedia("(max-width: 760px)").addEventListener("change", draw);
    at = levels.reduce((best, level, index) => Math.abs(level - 0.3) < Math.abs(levels[best] - 0.3) ? index : best, 0);
    byId("tail").hidden = false;
    draw();
  };
})();
