// Loads every page of the built book in headless Chromium: no errors on the console, every figure steps by keyboard and by touch and says the
// same as text, nothing moves by itself, no serious finding of axe-core, on paper a still on white; a picture of each figure at the width of a
// phone and of a desk.
//
// node check.mjs MODULES CHROMIUM BOOK PICTURES [PAGE …]: folders with node_modules, the program, `http://…` or `file://…` of the book, the
// folder for pictures, and pages (without them: all that the table of contents names).
import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

const [modules, chromium, book, pictures, ...only] = process.argv.slice(2);
const require = createRequire(join(resolve(modules), "package.json"));
const playwright = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");
const WIDTHS = { phone: 360, desk: 1280 };
const problems = [];
const seen = new Map();
mkdirSync(pictures, { recursive: true });

const browser = await playwright.chromium.launch({
  executablePath: chromium,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});

async function opened(context, page) {
  const tab = await context.newPage();
  // Tests that compute may run beside this one.
  tab.setDefaultTimeout(30_000);
  const tell = (what) => problems.push(`${page}: ${what}`);
  tab.on("console", (message) => { if (["error", "warning"].includes(message.type())) tell(`console: ${message.text()}`); });
  tab.on("pageerror", (error) => tell(`error: ${error.stack || error.message}`));
  tab.on("request", (request) => { if (!request.url().startsWith(book) && !request.url().startsWith("data:")) tell(`asks for ${request.url()}`); });
  await tab.goto(`${book}/${page}`);
  await tab.waitForFunction(() => Array.from(document.querySelectorAll(".figure[data-figure]")).every((f) => ["on", "off"].includes(f.dataset.state)));
  return tab;
}

// Some pages at a time: most of a page's time is waiting.
async function each(list, check) {
  const left = Array.from(list);
  await Promise.all(Array.from({ length: 4 }, async () => { while (left.length > 0) await check(left.shift()); }));
}

async function contents() {
  const context = await browser.newContext();
  const tab = await context.newPage();
  await tab.goto(`${book}/index.html`);
  const links = await tab.evaluate(() => Array.from(document.querySelectorAll("mdbook-sidebar-scrollbox a[href]"), (a) => a.href));
  await context.close();
  const pages = links.map((link) => link.split("#")[0].slice(book.length + 1)).filter(Boolean);
  return Array.from(new Set(pages));
}

// Every figure: it began, the keyboard moves it, and what is said of it changes.
async function keyboard(tab, page) {
  for (const figure of await tab.locator(".figure[data-figure]").all()) {
    const name = await figure.getAttribute("data-figure");
    const tell = (what) => problems.push(`${page}: figure ${name}: ${what}`);
    if ((await figure.getAttribute("data-state")) !== "on") {
      tell(`it did not begin: ${await figure.getAttribute("data-why")}`);
      continue;
    }
    const says = figure.locator("[role=status]").first();
    if ((await says.count()) === 0) { tell("nothing says what it shows"); continue; }
    const stops = figure.locator(".figure-steps button");
    if ((await stops.count()) > 0) {
      await stops.first().focus();
      const heard = new Set([await says.innerText()]);
      for (const key of ["ArrowRight", "ArrowRight", "End", "ArrowLeft", "Home"]) {
        await tab.keyboard.press(key);
        heard.add(await says.innerText());
      }
      if (heard.size < 2) tell(`arrow keys change nothing: ${Array.from(heard)}`);
    }
    // Each choice and each field works, too, and nothing breaks at its ends.
    // One choice may replace another.
    await figure.evaluate(async (root) => {
      for (const select of Array.from(root.querySelectorAll("select"))) {
        const was = select.value;
        for (const value of [...Array.from(select.options, (option) => option.value).slice(-2), was]) {
          if (!select.isConnected) break;
          select.value = value;
          select.dispatchEvent(new Event("change"));
          await new Promise((done) => setTimeout(done, 30));
        }
      }
    });
    // The assignment's first three kernels are of another kind (data/README.md): no line leads from them to the fourth.
    if (name === "ladder") {
      const joined = await figure.evaluate((root) => Array.from(root.querySelectorAll("polyline"), (line) => (line.dataset.steps || "none").split(" ")));
      if (joined.length === 0 || joined.some((steps) => steps.includes("none") || (steps.includes("3") && steps.includes("4")))) tell(`lines join the steps ${joined.join(" | ")}`);
    }
    for (const checked of await figure.locator("input[type=checkbox]").all()) { await checked.focus(); await tab.keyboard.press("Space"); await tab.keyboard.press("Space"); }
    for (const details of await figure.locator("details.figure-details > summary").all()) {
      const open = () => details.evaluate((summary) => summary.parentElement.open);
      const was = await open();
      await details.focus();
      await tab.keyboard.press("Enter");
      if ((await open()) === was) tell("a key neither opens nor closes a table");
      if (was) await tab.keyboard.press("Enter");
    }
    if ((await figure.locator("details.figure-details, table").count()) === 0) tell("neither a table nor a text says the same");
    const moving = await figure.evaluate((root) => root.getAnimations({ subtree: true }).length);
    if (moving > 0) tell(`${moving} parts move although the reader asked for no motion`);
    // What a choice asked for may still be on its way.
    const empty = () => figure.evaluate((root) => Array.from(root.querySelectorAll("details.figure-details[open]")).some((d) => d.innerText.trim().length < 20));
    const until = Date.now() + 15_000;
    while ((await empty()) && Date.now() < until) await tab.waitForTimeout(50);
    if (await empty()) tell("a table or text is empty");
    if (tab.url().split("#")[0] !== `${book}/${page}`) tell("a key left the page");
    seen.set(name, page);
  }
}

async function accessible(tab, page, theme) {
  await tab.addScriptTag({ path: axe });
  // mdBook's own menus are not ours; what stands on the page is.
  const found = await tab.evaluate(() => window.axe.run("main", { resultTypes: ["violations"], preload: false }));
  for (const one of found.violations) {
    if (!["serious", "critical"].includes(one.impact)) continue;
    const where = one.nodes.slice(0, 3).map((node) => `${node.target.join(" ")} ${node.any.concat(node.all).map((check) => check.message).join("; ")}`);
    problems.push(`${page} (${theme}): axe ${one.id} (${one.impact}): ${where.join(" | ")}`);
  }
}

// A finger: the same steps, the parts of pictures that can be chosen, and what opens.
async function touch(tab, page) {
  for (const figure of await tab.locator(".figure[data-figure]").all()) {
    const name = await figure.getAttribute("data-figure");
    const tell = (what) => problems.push(`${page}: figure ${name}, by touch: ${what}`);
    const says = figure.locator("[role=status]").first();
    const heard = new Set([await says.innerText()]);
    const stops = figure.locator(".figure-steps").first().locator("button");
    for (const at of [2, 2, 3, 1, 0]) {
      await stops.nth(at).tap();
      heard.add(await says.innerText());
    }
    if (heard.size < 2) tell(`buttons change nothing: ${Array.from(heard)}`);
    // Listings have buttons of mdBook's.
    for (const button of await figure.locator("button:not(pre button)").all()) {
      const box = await button.boundingBox();
      if (box && Math.min(box.width, box.height) < 32) tell(`the button "${await button.innerText()}" is ${box.width} by ${box.height} pixels`);
    }
    if (["timeline", "swizzle"].includes(name)) {
      const before = await says.innerText();
      const parts = figure.locator(".figure-picture .f-touch:not(.f-chosen), .figure-picture .f-event:not(.f-chosen)");
      // One that nothing else covers.
      const place = await parts.evaluateAll((all) => {
        all[0]?.closest(".figure-picture").scrollIntoView({ block: "center" });
        const middles = all.map((one) => { const box = one.getBoundingClientRect(); return { one, x: box.x + box.width / 2, y: box.y + box.height / 2 }; });
        const free = middles.find(({ one, x, y }) => document.elementFromPoint(x, y) === one);
        return free ? { x: free.x, y: free.y } : null;
      });
      if (place) await tab.touchscreen.tap(place.x, place.y);
      if ((await says.innerText()) === before) tell("a part of the picture that is touched is not chosen");
    }
    const first = figure.locator("details.figure-details > summary").first();
    const open = () => first.evaluate((summary) => summary.parentElement.open);
    const was = await open();
    await first.tap();
    if ((await open()) === was) tell("a table neither opens nor closes");
  }
}

// On paper: the picture and what is said of it, dark on white, without what can only be clicked.
async function printed(tab, page) {
  await tab.emulateMedia({ media: "print" });
  const wrong = await tab.evaluate(() => {
    const light = (colour) => { const [r, g, b] = colour.match(/[\d.]+/g).map(Number); return (0.3 * r + 0.6 * g + 0.1 * b) / 255; };
    const found = [];
    const ink = light(getComputedStyle(document.querySelector("main")).color);
    const around = Array.from(document.querySelectorAll("nav, #mdbook-sidebar, #mdbook-menu-bar")).filter((node) => node.getClientRects().length > 0);
    for (const node of around) found.push(`${node.tagName} ${node.id || node.className} is printed`);
    if (ink > 0.4) found.push(`text is light (${ink.toFixed(2)}) on paper`);
    for (const root of document.querySelectorAll(".figure[data-figure]")) {
      const name = root.dataset.figure;
      const seen = (selector) => Array.from(root.querySelectorAll(selector)).filter((node) => node.getClientRects().length > 0);
      if (seen(".figure-controls, .figure-steps, button:not(pre button)").length > 0) found.push(`figure ${name}: controls are printed`);
      if (seen(".figure-picture svg").length === 0) found.push(`figure ${name}: no picture is printed`);
      if (seen("[role=status]").length === 0) found.push(`figure ${name}: nothing says what it shows`);
      for (const text of seen(".figure-picture text")) {
        const fill = light(getComputedStyle(text).fill);
        if (fill > 0.45) { found.push(`figure ${name}: "${text.textContent}" is light (${fill.toFixed(2)}) on paper`); break; }
      }
    }
    return found;
  });
  problems.push(...wrong.map((what) => `${page}, printed: ${what}`));
  await tab.emulateMedia({ media: "screen" });
}

const pages = only.length > 0 ? only : await contents();
// Every page at a desk and on a phone; those with figures, the first, and those one looks things up in, also in a dark theme.
const LOOKED_UP = /^(builder|glossary|findings.*|instructions.*)\.html$/;
const again = new Set(pages.slice(0, 1).concat(pages.filter((page) => LOOKED_UP.test(page))));
for (const [width, theme] of [["desk", "light"], ["phone", "light"], ["desk", "navy"]]) {
  const first = width === "desk" && theme === "light";
  const context = await browser.newContext({ viewport: { width: WIDTHS[width], height: 900 }, reducedMotion: "reduce" });
  await context.addInitScript((name) => { try { localStorage.setItem("mdbook-theme", name); } catch { /* a file has none */ } }, theme);
  await each(theme === "light" ? pages : again, async (page) => {
    const tab = await opened(context, page);
    const figures = await tab.locator(".figure[data-figure]").all();
    if (figures.length > 0) again.add(page);
    for (const [number, figure] of figures.entries()) {
      const name = await figure.getAttribute("data-figure");
      const count = number === 0 ? "" : `-${number + 1}`;
      await figure.scrollIntoViewIfNeeded();
      const file = `${page.replace(/\.html$/, "").replaceAll("/", "-")}-${name}${count}-${width}${theme === "light" ? "" : "-dark"}.png`;
      // mdBook's bar stays at the top of the window, over whatever is there.
      await figure.screenshot({ path: join(pictures, file), style: "#mdbook-menu-bar { display: none !important; }" });
      const wide = await figure.evaluate((root) => root.scrollWidth - root.clientWidth);
      if (wide > 1) problems.push(`${page}: figure ${name} is ${wide} pixels too wide at ${WIDTHS[width]}`);
    }
    const name = page.replace(/\.html$/, "").replaceAll("/", "-");
    if (again.has(page)) await tab.screenshot({ path: join(pictures, `page-${name}-${width}${theme === "light" ? "" : "-dark"}.png`) });
    const cut = await tab.evaluate(() => {
      const edge = document.querySelector("main").getBoundingClientRect().right + 1;
      return Array.from(document.querySelectorAll("main svg")).filter((one) => one.getBoundingClientRect().right > edge).map((one) => one.getAttribute("aria-label"));
    });
    for (const label of cut) problems.push(`${page}: the picture "${label}" is cut at ${WIDTHS[width]}`);
    // What is wide scrolls by itself; the page does not.
    const over = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    if (over > 1) problems.push(`${page} is ${over} pixels too wide at ${WIDTHS[width]}`);
    if (first) await keyboard(tab, page);
    await accessible(tab, page, `${width}, ${theme}`);
    if (theme !== "light") await printed(tab, page);
    await tab.close();
  });
  await context.close();
}
const finger = await browser.newContext({ viewport: { width: WIDTHS.phone, height: 800 }, hasTouch: true, isMobile: true });
await each(Array.from(again), async (page) => {
  const tab = await opened(finger, page);
  await touch(tab, page);
  await tab.close();
});
await finger.close();
await browser.close();
console.log(`${pages.length} pages; figures: ${Array.from(seen, ([name, page]) => `${name} (${page})`).join(", ")}`);
for (const problem of new Set(problems)) console.log(`FAILED ${problem}`);
process.exit(problems.length === 0 ? 0 : 1);
