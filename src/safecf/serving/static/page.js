"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  const K = 10;
  const state = { about: null, picks: [], turn: 0, answers: {}, shown: "model" };

  // Elements: make("li", { class: "own" }, "text", child, ...).
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (key.startsWith("--")) element.style.setProperty(key, value);
      else if (key.startsWith("aria-") && value !== null && value !== undefined) element.setAttribute(key, String(value));
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.filter((each) => each !== null && each !== undefined));
    return element;
  };
  const space = "\u00a0";
  const percent = (share, digits = 2) => Number((100 * share).toPrecision(digits)) + space + "%";
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const counted = (number, what) => `${number.toLocaleString("en-US")} ${what}${number === 1 ? "" : "s"}`;
  const listed = (texts) => texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`;

  // JSON in which integers of 16 digits and more, such as ids, are BigInt: numbers would round them.
  const tokens = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
  const isBig = (value) => typeof value?.big === "string" && Object.keys(value).length === 1;
  const parse = (text) => JSON.parse(text.replace(tokens, (token) => /^-?\d{16,}$/.test(token) ? `{"big":"${token}"}` : token),
    (_, value) => isBig(value) ? BigInt(value.big) : value);
  const write = (value) => JSON.stringify(value, (_, each) => typeof each === "bigint" ? { big: String(each) } : each).replace(/\{"big":"(-?\d+)"\}/g, "$1");

  // Requests; a token is asked for when the service wants one.
  const stored = (store, key, value) => {
    try {
      if (value === undefined) return store.getItem(key);
      store.setItem(key, value);
    } catch { /* no storage */ }
    return null;
  };
  const token = () => stored(sessionStorage, "safecf-token");
  const askToken = () => new Promise((resolve) => {
    const dialog = byId("ask-token");
    byId("token-wrong").hidden = !token();
    if (!dialog.open) { byId("token").value = ""; dialog.showModal(); }
    dialog.addEventListener("close", () => { stored(sessionStorage, "safecf-token", byId("token").value); resolve(); }, { once: true });
  });
  const fetched = async (path, body) => {
    const used = token(), headers = used ? { Authorization: `Bearer ${used}` } : {};
    if (body) headers["Content-Type"] = "application/json";
    const reply = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && write(body) });
    if (reply.status !== 401) return reply;
    if (used === token()) await askToken();  // else another request has got a new one meanwhile
    return fetched(path, body);
  };
  const ask = async (path, body) => {
    const reply = await fetched(path, body);
    const found = parse(await reply.text());
    if (!reply.ok) throw Object.assign(new Error(found.detail ?? `status ${reply.status}`), { answered: true });
    return found;
  };
  // A link cannot send the token: the page fetches what it leads to.
  document.querySelectorAll("a.own").forEach((link) => link.addEventListener("click", async (event) => {
    if (!token()) return;
    event.preventDefault();
    try { location.assign(URL.createObjectURL(await (await fetched(link.getAttribute("href"))).blob())); } catch (error) { trouble(error); }
  }));
  const trouble = (error) => {
    byId("trouble").hidden = !error;
    byId("trouble").textContent = !error ? "" : error.answered ? capital(error.message) : `The service did not answer: ${error.message}`;
  };
  const notice = (text = "") => { byId("notice").hidden = !text; byId("notice").textContent = text; };
  const atMost = (k) => Math.min(k, state.about.limits.k);

  // Replace children; if one of their buttons has the focus, the one at the same place gets it.
  const redraw = (parent, children) => {
    const buttons = () => [...parent.querySelectorAll("button")], at = buttons().indexOf(document.activeElement);
    parent.replaceChildren(...children);
    if (at >= 0) (buttons()[Math.min(at, buttons().length - 1)] ?? byId("surprise")).focus({ preventScroll: true });
  };

  // Items: titles, genres, covers.
  const title = (item) => item.title ?? String(item.id);
  const genres = (item) => Array.isArray(item.genres) ? item.genres : typeof item.genres === "string" ? item.genres.split("|") : [];
  const bareTitle = (item) => title(item).replace(/\s*\(\d{4}\)$/, "").replace(/^(.*), (The|An?|L[ae]s?|El|Il|Der|Die|Das)$/, "$2 $1");
  const year = (item) => item.year ?? title(item).match(/\((\d{4})\)$/)?.[1];
  const about = (item) => [year(item), genres(item).slice(0, 3).join(", ")].filter(Boolean).join(" · ");
  const hash = (text) => [...String(text)].reduce((sum, each) => (sum * 31 + each.codePointAt(0)) % 99991, 7);
  const hues = new Map();  // genres turn by the golden angle, in the order in which they come
  const hue = (genre) => hues.get(genre) ?? hues.set(genre, Math.round(205 + 137.508 * hues.size) % 360).get(genre);
  const cover = (item) => {
    const words = bareTitle(item).split(/[^\p{L}\p{N}]+/u).filter((word) => word && !/^(the|a|an|of|in|and|for|no)$/i.test(word));
    const initials = words.slice(0, 2).map((word) => [...word][0].toUpperCase()).join("");
    const place = hash(item.id);
    return make("span", { class: "cover", "aria-hidden": "true", "--h": (genres(item)[0] ? hue(genres(item)[0]) : hash(item.id) % 360) + (place % 25), "--x": `${place % 70 - 20}%`, "--y": `${place % 53}%` }, initials);
  };

  // Picks are kept in the address, so that they can be shared and taken back.
  const remember = () => {
    const text = state.picks.length ? "#" + encodeURIComponent(write(state.picks.map((item) => item.id))) : location.pathname;
    history.pushState(null, "", text);
  };
  const recall = async () => {
    let ids = [];
    try { ids = parse(decodeURIComponent(location.hash.slice(1) || "[]")); } catch { /* not ours */ }
    const good = Array.isArray(ids) ? ids.filter((id) => ["string", "number", "bigint"].includes(typeof id)) : [];
    const kept = fitting([...new Set(good)]);
    state.picks = kept.length ? (await ask("items", { ids: kept })).items : [];
    await refresh();
  };
  // Leave out what is beyond the limit of the service, and say so.
  const fitting = (picks) => {
    const most = state.about.limits.history;
    notice(picks.length > most ? `These are the first ${most} of ${counted(picks.length, "pick")}: the service takes no more.` : "");
    return picks.slice(0, most);
  };
  const change = (picks) => { state.picks = fitting(picks); remember(); refresh(); };
  const has = (item) => state.picks.some((each) => each.id === item.id);
  const pick = (item) => {
    if (has(item)) return;
    if (state.picks.length < state.about.limits.history) change([...state.picks, item]);
    else notice(`The service takes ${counted(state.picks.length, "pick")} at most: remove one first.`);
  };
  const drop = (item) => change(state.picks.filter((each) => each.id !== item.id));

  const drawPicks = () => {
    redraw(byId("picks"), state.picks.map((item) => make("li", {},
      make("button", { type: "button", class: "chip", title: title(item), "aria-label": `Remove ${title(item)}`, onclick: () => drop(item) },
        cover(item), make("span", { class: "text" }, bareTitle(item)), make("span", { class: "x", "aria-hidden": "true" }, "×")))));
    byId("clear").hidden = !state.picks.length;
    byId("surprise").textContent = state.picks.length ? "Another taste" : "Surprise me";
  };

  // Search: a combobox.
  const query = byId("query"), found = byId("found");
  let hits = [], at = -1, searching = 0, timer = 0;
  const close = () => { found.hidden = true; at = -1; query.setAttribute("aria-expanded", "false"); query.removeAttribute("aria-activedescendant"); };
  const marked = (text, words) => {
    const place = words.map((word) => text.toLowerCase().indexOf(word)).find((each) => each >= 0) ?? -1;
    const length = words.find((word) => text.toLowerCase().indexOf(word) === place)?.length ?? 0;
    return place < 0 ? [text] : [text.slice(0, place), make("mark", {}, text.slice(place, place + length)), text.slice(place + length)];
  };
  const choose = (index) => {
    at = index;
    [...found.children].forEach((each, place) => each.setAttribute("aria-selected", place === at));
    if (at >= 0) { query.setAttribute("aria-activedescendant", `hit-${at}`); found.children[at].scrollIntoView({ block: "nearest" }); }
  };
  const take = (item) => { pick(item); query.value = ""; close(); query.focus(); };
  const search = async () => {
    const text = query.value.trim(), turn = ++searching;
    if (!text) return close();
    try {
      const answer = await ask(`search?k=${atMost(7 + state.picks.length)}&q=${encodeURIComponent(text)}`);
      if (turn !== searching) return;
      hits = answer.items.filter((item) => !has(item)).slice(0, 7);
    } catch (error) { return trouble(error); }
    const words = text.toLowerCase().split(/\s+/);
    const rows = hits.map((item, index) => make("li", { role: "option", id: `hit-${index}`, "aria-selected": false, onpointerdown: (event) => event.preventDefault(), onclick: () => take(item), onpointermove: () => at === index || choose(index) },
      cover(item), make("span", {}, make("span", { class: "name" }, ...marked(title(item), words)), make("br"), make("small", {}, about(item)))));
    found.replaceChildren(...(rows.length ? rows : [make("li", { class: "none", role: "option", "aria-disabled": "true" }, "No title has these words.")]));
    found.hidden = false;
    query.setAttribute("aria-expanded", "true");
    if (rows.length) choose(0);
  };
  query.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 90); });
  query.addEventListener("focus", () => { if (query.value) search(); });
  query.addEventListener("blur", close);
  query.addEventListener("keydown", (event) => {
    if (event.key === "Backspace" && !query.value && state.picks.length) return drop(state.picks.at(-1));
    if (event.key === "Escape") { query.value = ""; return close(); }
    if (found.hidden || !hits.length) return;
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1 };
    if (event.key in moves) { event.preventDefault(); choose((moves[event.key] + hits.length) % hits.length); }
    if (event.key === "Enter" && at >= 0) { event.preventDefault(); take(hits[at]); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/input|select|textarea/i.test(document.activeElement.tagName)) { event.preventDefault(); query.focus(); }
  });

  // A taste: an item by chance, and those most like it.
  byId("surprise").addEventListener("click", async () => {
    try {
      const many = (await ask(`search?k=${atMost(500)}`)).items.filter((item) => item.popularity !== 0);
      const first = many[Math.floor(Math.random() * many.length)];
      const near = (await ask("similar", { item: first.id, k: atMost(4) })).items;
      change([first, ...near].slice(0, state.about.limits.history).map(({ score, ...item }) => item));
    } catch (error) { trouble(error); }
  });
  // What a known user has becomes the picks.
  byId("known").addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = byId("user").value.trim();
    try {
      const user = state.about.histories === "integers" && /^-?\d+$/.test(text) ? BigInt(text) : text;
      const { items } = await ask("history", { user });
      change(items.map(({ weight, ...item }) => item));
    } catch (error) { trouble(error); }
  });
  byId("clear").addEventListener("click", () => { change([]); query.focus(); });
  window.addEventListener("popstate", recall);

  // Recommendations of both models.
  const names = () => Object.fromEntries(Object.entries(state.about.models).map(([role, each]) => [role, state.about.evaluation?.roles[role] ?? each.class]));
  const displayed = (role) => {
    const own = names();
    return own.model === own.baseline ? `${own[role]} (${role})` : own[role];
  };
  const explain = (role, item, k = 3) => ask("explain", { item: item.id, history: state.picks.map((each) => each.id), model: role, k: atMost(k) });
  const because = (answer) => answer.items.map((part) => {
    const share = answer.score ? part.score / Math.abs(answer.score) : 0;
    const most = Math.max(...answer.items.map((each) => Math.abs(each.score)), Number.MIN_VALUE);
    return make("div", { class: "part" }, make("span", {}, bareTitle(part)),
      make("span", { class: "bar" }, make("i", { class: part.score < 0 ? "minus" : null, "--w": `${(100 * Math.abs(part.score)) / most}%` })),
      make("span", { class: "share" }, percent(share)));
  });
  const entry = (role, item, index, other) => {
    const place = other ? other.findIndex((each) => each.id === item.id) : -1;
    const own = other && place < 0;
    const shift = place - index;
    const note = !other ? null : own ? make("span", { class: "badge" }, "only here")
      : make("span", { class: "same", title: shift ? `${Math.abs(shift)} places ${shift > 0 ? "higher" : "lower"} than on the other list` : null }, shift === 0 ? "" : `${shift > 0 ? "▲" : "▼"}${space}${Math.abs(shift)}`);
    const why = make("div", { class: "why", id: `why-${role}-${index}`, hidden: true });
    const button = make("button", { type: "button", class: "quiet", "aria-expanded": "false", "aria-controls": why.id, onclick: async () => {
      why.hidden = !why.hidden;
      button.setAttribute("aria-expanded", !why.hidden);
      if (why.hidden || why.childElementCount) return;
      try {
        const answer = await explain(role, item, 5);
        why.replaceChildren(make("p", {}, "What your picks add to its score:"), ...because(answer));
      } catch (error) { why.replaceChildren(make("p", {}, error.message)); }
    } }, "Why?");
    const add = make("button", { type: "button", class: "quiet add", "aria-label": `Add ${title(item)} to your picks`, title: "Add to your picks", onclick: () => { const { score, ...bare } = item; pick(bare); } }, "+");
    return make("li", { class: own ? "own" : null }, make("div", { class: "entry" }, make("span", { class: "place" }, String(index + 1)), cover(item),
      make("span", {}, make("span", { class: "name" }, bareTitle(item)), " ", note, make("br"), make("small", {}, about(item))),
      make("span", { class: "acts" }, button, add)), why);
  };
  const drawLists = () => {
    const roles = Object.keys(state.answers);
    byId("lists").classList.toggle("single", roles.length < 2);
    redraw(byId("lists"), roles.map((role) => {
      const other = state.answers[roles.find((each) => each !== role)]?.items;
      const { tail } = state.about.models[role];
      const said = tail ? `looks after the worst-off ${percent(tail)} of users` : role === "baseline" ? "the baseline" : "";
      return make("article", { class: `list ${role}${role === state.shown ? " shown" : ""}`, "aria-label": displayed(role) },
        make("header", {}, make("h3", {}, displayed(role)), make("small", {}, said)),
        make("ol", {}, ...state.answers[role].items.map((item, index) => entry(role, item, index, other))));
    }));
    byId("switch").hidden = roles.length < 2;
    redraw(byId("switch"), roles.map((role) => make("button", { type: "button", "aria-pressed": role === state.shown, onclick: () => show(role) }, displayed(role))));
  };
  const show = (role) => {  // on a phone, which has place for one list
    state.shown = role;
    const place = Object.keys(state.answers).indexOf(role);
    [...byId("lists").children].forEach((list, index) => list.classList.toggle("shown", index === place));
    [...byId("switch").children].forEach((button, index) => button.setAttribute("aria-pressed", index === place));
  };
  const onlyOf = (role, other) => state.answers[role].items.filter((item) => !state.answers[other].items.some((each) => each.id === item.id));
  const mean = (items) => items.reduce((sum, each) => sum + (each.popularity ?? 0), 0) / Math.max(1, items.length);

  const drawDifferences = async (turn) => {
    const both = "baseline" in state.answers;
    byId("differences").hidden = !both;
    const { model } = state.answers;
    byId("summary").textContent = model.popular ? "Nothing is known of your picks: these are the most popular titles." : "";
    if (!both) return;
    const own = { model: onlyOf("model", "baseline"), baseline: onlyOf("baseline", "model") };
    const common = model.items.length - own.model.length;
    byId("summary").textContent += ` ${common} of ${counted(model.items.length, "title")} ${common === 1 ? "is" : "are"} on both lists.`;
    const known = model.items.every((item) => item.popularity !== undefined);
    const shares = ["model", "baseline"].map((role) => percent(mean(state.answers[role].items)));
    byId("differs").textContent = (own.model.length ? "" : "Both lists have the same titles. ") + (known
      ? `A title of ${displayed("model")}'s list has on average been chosen by ${shares[0]} of all users, one of ${displayed("baseline")}'s by ${shares[1]}.` : "");
    byId("reasons").hidden = !own.model.length;
    const blocks = await Promise.all(["model", "baseline"].map(async (role) => {
      const rows = await Promise.all(own[role].slice(0, 4).map(async (item) => {
        let reason = about(item);
        try {
          const parts = (await explain(role, item, 2)).items.filter((part) => part.score > 0).map(bareTitle);
          if (parts.length) reason = `because of ${listed(parts)}`;
        } catch { /* a model that cannot explain */ }
        return make("li", {}, cover(item), make("span", {}, make("b", {}, bareTitle(item)), make("br"), make("small", {}, reason)));
      }));
      return make("div", { class: `reasons ${role}` }, make("h3", {}, `Only ${displayed(role)}`), make("ul", {}, ...rows));
    }));
    if (turn === state.turn) byId("reasons").replaceChildren(...blocks);
  };
  const drawMix = () => {
    const count = (items) => items.reduce((sums, item) => { const genre = genres(item)[0]; if (genre) sums.set(genre, (sums.get(genre) ?? 0) + 1); return sums; }, new Map());
    const rows = [["Your picks", state.picks], ...Object.entries(state.answers).map(([role, each]) => [displayed(role), each.items])];
    byId("mix").hidden = !rows.some(([, items]) => count(items).size);
    const order = [...count(rows.flatMap(([, items]) => items))].sort((a, b) => b[1] - a[1]).map(([genre]) => genre);
    byId("mix-rows").replaceChildren(...rows.map(([name, items]) => {
      const sums = count(items), there = order.filter((genre) => sums.has(genre)), told = (genre) => `${genre}: ${sums.get(genre)} of ${items.length}`;
      return make("div", { class: "row" }, make("span", {}, name), make("div", { class: "strip", role: "img", "aria-label": there.map(told).join(", ") },
        ...there.map((genre) => make("span", { "--h": hue(genre), "--n": sums.get(genre), title: told(genre) }, make("span", {}, genre)))));
    }));
    byId("legend").replaceChildren(...order.map((genre) => make("span", { "--h": hue(genre) }, genre)));
  };

  const refresh = async () => {
    const turn = ++state.turn;
    drawPicks();
    const empty = !state.picks.length;
    if (!empty && byId("start").contains(document.activeElement)) byId("picks").querySelector("li:last-child button").focus({ preventScroll: true });
    byId("start").hidden = !empty;
    if (empty) { for (const id of ["results", "differences"]) byId(id).hidden = true; return; }
    const history = state.picks.map((item) => item.id);
    try {
      const roles = Object.keys(state.about.models);
      const answers = await Promise.all(roles.map((model) => ask("recommend", { history, k: atMost(K), model })));
      if (turn !== state.turn) return;
      trouble(null);
      state.answers = Object.fromEntries(roles.map((role, index) => [role, answers[index]]));
      byId("results").hidden = false;
      drawLists();
      drawMix();
      await drawDifferences(turn);
    } catch (error) { if (turn === state.turn) trouble(error); }
  };

  window.safecf = { make, percent, capital, counted, byId };
  const theme = byId("theme"), dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const paint = () => { theme.textContent = isDark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`); };
  if (["light", "dark"].includes(stored(localStorage, "safecf-theme"))) root.dataset.theme = stored(localStorage, "safecf-theme");
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; stored(localStorage, "safecf-theme", root.dataset.theme); paint(); });
  dark.addEventListener("change", paint);
  paint();

  const begin = async () => {
    try {
      state.about = await ask("about");
      const { models } = state.about;
      byId("serving").textContent = Object.keys(models).map((role) => displayed(role)).join(" and ") + ` · ${counted(models.model.items, "title")}`;
      if (models.baseline) byId("lede").textContent = `Pick a few titles, and see what ${displayed("model")} and ${displayed("baseline")} recommend to you.`;
      // At most two of each genre, then others, as far as there is place.
      const perGenre = new Map();
      const varied = (item) => { const genre = genres(item)[0]; perGenre.set(genre, (perGenre.get(genre) ?? 0) + 1); return !genre || perGenre.get(genre) <= 2; };
      const known = (await ask(`search?k=${atMost(100)}`)).items, first = known.filter(varied);
      const popular = [...first, ...known.filter((item) => !first.includes(item))].slice(0, 12);
      byId("shelf").replaceChildren(...popular.map((item) => make("li", {}, make("button", { type: "button", onclick: () => pick(item), "aria-label": `Pick ${title(item)}` }, cover(item), make("b", {}, bareTitle(item)), make("small", {}, about(item))))));
      byId("known").hidden = !state.about.histories;
      if (state.about.evaluation) window.safecf.drawTail(state.about);
      await recall();
    } catch (error) { trouble(error); }
    root.classList.add("ready");
  };
  window.addEventListener("DOMContentLoaded", begin);
})();
