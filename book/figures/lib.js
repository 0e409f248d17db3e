// What all figures share: finding them on the page, data that the emulator recorded, elements, buttons that step.
//
// A figure is `<div class="figure" data-figure="NAME">…</div>`. What stands in it is its text: it is shown where there is no JavaScript, and
// below the figure otherwise. Scripts are plain ones, not modules, and data are scripts that call `recorded`: both work from a file, too.
(function () {
  "use strict";
  const here = document.currentScript && document.currentScript.src ? document.currentScript.src.replace(/[^/]*$/, "") : "";
  const builders = new Map();
  const recordings = new Map();
  const asked = new Map();
  let count = 0;

  // --- data ---

  function recorded(name, value) {
    recordings.set(name, value);
  }

  function load(file, isThere) {
    if (isThere()) return Promise.resolve();
    if (!asked.has(file)) {
      asked.set(file, new Promise((done, failed) => {
        const script = document.createElement("script");
        script.src = here + file;
        script.onload = () => (isThere() ? done() : failed(new Error(file + " holds something else")));
        script.onerror = () => failed(new Error(file + " is not there"));
        document.head.append(script);
      }));
    }
    return asked.get(file);
  }

  async function data(name) {
    await load("data/" + name + ".js", () => recordings.has(name));
    return recordings.get(name);
  }

  // --- elements ---

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
  }

  function el(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }

  function svg(tag, attributes, ...children) {
    return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  }

  function id() {
    count += 1;
    return "figure-part-" + count;
  }

  function button(text, label, onclick) {
    return el("button", { type: "button", "aria-label": label === text ? null : label, title: label, onclick }, text);
  }

  // A list to choose from: `[[value, text], …]`.
  function choice(label, options, value, onchange) {
    const name = id();
    const select = el("select", { id: name, onchange: () => onchange(select.value) },
      options.map(([key, text]) => el("option", { value: key, selected: key === value }, text)));
    const box = el("span", { class: "figure-field" }, el("label", { for: name }, label), select);
    box.select = select;
    return box;
  }

  function number(label, value, least, most, onchange) {
    const name = id();
    const input = el("input", { id: name, type: "number", inputmode: "numeric", min: least, max: most, value, oninput: () => {
      const typed = Number(input.value);
      if (input.value !== "" && Number.isInteger(typed) && typed >= least && typed <= most) onchange(typed);
    } });
    const box = el("span", { class: "figure-field" }, el("label", { for: name }, label), input);
    box.input = input;
    return box;
  }

  // A table: heads and rows of texts or elements. The first cell of a row is its head.
  function table(heads, rows, caption) {
    return el("div", { class: "figure-table", tabindex: 0, role: "region", "aria-label": caption },
      el("table", {}, el("caption", {}, caption),
        el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
        el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, at) =>
          at === 0 ? el("th", { scope: "row" }, cell) : el("td", {}, cell)))))));
  }

  // A table that is made when it is opened.
  function details(summary, make) {
    const box = el("details", { class: "figure-details" }, el("summary", {}, summary));
    let body = null;
    const again = () => {
      if (!box.open) return;
      if (body) body.remove();
      body = make();
      box.append(body);
    };
    box.addEventListener("toggle", again);
    box.again = again;
    return box;
  }

  // Which run a page asks for: `data-recording="step04"`, or `data-step` with the number of a step.
  function asksFor(root, otherwise) {
    const { recording, step } = root.dataset;
    return recording || (step ? `step${step.padStart(2, "0")}` : otherwise);
  }

  // A picture: `draw(width)` gives an SVG element for that many pixels. It is drawn again when the width changes.
  function picture(draw) {
    const box = el("div", { class: "figure-picture" });
    let width = 0;
    box.again = () => {
      if (width > 0) box.replaceChildren(draw(width));
    };
    new ResizeObserver(() => {
      const now = Math.floor(box.clientWidth);
      if (now > 0 && now !== width) {
        width = now;
        box.again();
      }
    }).observe(box);
    return box;
  }

  function sheet(width, height, label, ...children) {
    return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...children);
  }

  function rect(x, y, width, height, className, title) {
    return svg("rect", { x, y, width: Math.max(width, 0), height: Math.max(height, 0), class: className },
      title ? svg("title", {}, title) : null);
  }

  function text(x, y, content, className, anchor) {
    return svg("text", { x, y, class: className, "text-anchor": anchor }, content);
  }

  // Buttons that go through `count` states, and what a screen reader hears of each. Arrow keys work in the whole figure.
  function stepper(options) {
    let at = options.at || 0;
    const place = el("output", { class: "figure-place" });
    const says = el("p", { class: "figure-says", role: "status", "aria-live": "polite" });
    const box = el("div", { class: "figure-steps", role: "group", "aria-label": options.label || "Steps" });
    const go = (to, quiet) => {
      const last = Math.max(options.count() - 1, 0);
      at = Math.min(Math.max(to, 0), last);
      place.textContent = options.count() === 0 ? "none" : `${at + 1} of ${options.count()}`;
      const words = options.show(at, quiet === true);
      says.replaceChildren(...(Array.isArray(words) ? words : [words]));
      // Not `disabled`: a button that can go no further keeps the keyboard, so that arrow keys still belong to the figure.
      for (const one of [first, back]) one.setAttribute("aria-disabled", at === 0);
      for (const one of [next, end]) one.setAttribute("aria-disabled", at === last);
    };
    const press = (to) => () => go(to());
    const first = button("|◀", "First step", press(() => 0));
    const back = button("◀", "Step back", press(() => at - 1));
    const next = button("▶", "Step forward", press(() => at + 1));
    const end = button("▶|", "Last step", press(() => options.count() - 1));
    box.append(first, back, next, end, place);
    box.says = says;
    box.go = go;
    box.at = () => at;
    box.key = (event) => {
      const moves = { ArrowLeft: () => at - 1, ArrowRight: () => at + 1, Home: () => 0, End: () => options.count() - 1 };
      if (!moves[event.key] || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return false;
      go(moves[event.key]());
      return true;
    };
    return box;
  }

  // Puts a figure together: its parts in their order, the text that stood there below, arrow keys for the stepper.
  function frame(root, title, parts, stepper) {
    const was = Array.from(root.childNodes);
    const hasText = was.some((node) => node.textContent.trim() !== "");
    const fallback = hasText ? el("details", { class: "figure-details" }, el("summary", {}, "The same as text"), ...was) : null;
    // The text below a timeline speaks of the numbers in its table.
    if (fallback && root.dataset.figure === "timeline" && fallback.querySelector("table")) fallback.open = true;
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", "Figure: " + title);
    root.replaceChildren(el("p", { class: "figure-title" }, title), ...parts.filter(Boolean), ...(fallback ? [fallback] : []));
    root.addEventListener("keydown", (event) => {
      const typed = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (!typed && stepper && stepper.key(event)) event.preventDefault();
      // The book turns its pages by arrow keys; not from within a figure.
      if (/^Arrow/.test(event.key)) event.stopPropagation();
    });
  }

  // --- begin ---

  function define(name, build) {
    builders.set(name, build);
  }

  async function start(root) {
    const name = root.dataset.figure;
    try {
      await load(name + ".js", () => builders.has(name));
      await builders.get(name)(root, window.bookFigures);
      root.classList.add("figure-on");
      root.dataset.state = "on";
    } catch (error) {
      // The text stays.
      root.dataset.state = "off";
      root.dataset.why = error && error.stack ? error.stack : String(error);
    }
  }

  // What is wider than the page can be scrolled by keyboard, too: tables and listings of the book.
  function scrollable() {
    for (const box of document.querySelectorAll("main .table-wrapper, main pre > code")) {
      if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
      else if (box.getAttribute("tabindex") === "0") box.removeAttribute("tabindex");
    }
  }

  async function begin() {
    scrollable();
    // Letters that come late change what is too wide.
    for (const event of ["resize", "load"]) window.addEventListener(event, scrollable);
    document.fonts.ready.then(scrollable);
    const figures = Array.from(document.querySelectorAll(".figure[data-figure]"));
    if (figures.length === 0 || !figures.some((root) => !root.dataset.state)) return;
    for (const root of figures) root.dataset.state = "waits";
    // What some of them need stands in two files more.
    try {
      await load("recording.js", () => Boolean(window.bookFigures.recording));
      // A page that stands alone has what it needs in it, and asks for nothing.
      if (here) await load("formulas.js", () => Boolean(window.bookFormulas));
    } catch (error) {
      if (!window.bookFigures.recording) {
        for (const root of figures) root.dataset.state = "off";
        return;
      }
    }
    await Promise.all(figures.map(start));
  }

  window.bookFigures = {
    recorded, data, load, el, svg, id, button, choice, number, table, details, asksFor, picture, sheet, rect, text, stepper, frame, define, begin,
  };
  // A page that holds its data itself begins when it is complete.
  if (here) {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
    else begin();
  }
})();
