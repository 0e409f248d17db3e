// The two descriptors of an MMA: a number and its fields, each from the other.
(function () {
  "use strict";
  const lib = window.bookFigures;
  const { el } = lib;
  const formulas = window.bookFormulas;
  // Of the fields, in their order: the same for the bits and for the rows of the table.
  const COLOURS = ["f-a", "f-b", "f-c", "f-g", "f-d", "f-e", "f-f"];
  const colour = (at) => COLOURS[at % COLOURS.length];
  const SWIZZLE = { 0: "none", 1: "128 bytes, atoms of 32", 2: "128 bytes", 4: "64 bytes", 6: "32 bytes" };
  const KINDS = {
    matrix: {
      name: "shared memory (64 bits)", width: 64, layout: formulas.MATRIX,
      words: { start: "start address", leading: "leading-dimension offset", stride: "stride-dimension offset", constant: "constant", base: "base offset", mode: "leading mode", swizzle: "swizzle" },
      means: {
        start: (v) => `byte ${v} (0x${v.toString(16)}) of the shared window`, leading: (v) => `${v} bytes`, stride: (v) => `${v} bytes from eight rows to the next eight`,
        constant: (v) => (v === 1 ? "as it must be" : "must be 1"), base: (v) => (v === 0 ? "the tile is aligned to its pattern" : "the pattern begins elsewhere"),
        mode: (v) => (v === 0 ? "relative" : "absolute"), swizzle: (v) => SWIZZLE[v] || "no mode",
      },
      // The tile of step 1, and its four slices along K.
      examples: [0, 1, 2, 3].map((slice) => [`slice ${slice} of a tile at byte 0, 128-byte swizzle`, 0x4000404000000000n + BigInt(slice * 2)])
        .concat([["a tile at byte 16384, 128-byte swizzle", 0x4000404000000400n], ["the same for Hopper: not for tcgen05", 0x4000004000000400n]]),
    },
    instruction: {
      name: "instruction, kind::f16 (32 bits)", width: 32, layout: formulas.INSTRUCTION,
      words: { d: "type of D", a: "type of A", b: "type of B", negate_a: "negate A", negate_b: "negate B", a_mn_major: "A transposed", b_mn_major: "B transposed", n: "N", m: "M" },
      means: {
        d: (v) => ["FP16", "FP32", "S32"][v] || "no type", a: (v) => ["FP16", "BF16"][v] || "no type of kind::f16", b: (v) => ["FP16", "BF16"][v] || "no type of kind::f16",
        negate_a: (v) => (v ? "yes" : "no"), negate_b: (v) => (v ? "yes" : "no"), a_mn_major: (v) => (v ? "rows run along M" : "rows run along K"),
        b_mn_major: (v) => (v ? "rows run along N" : "rows run along K"), n: (v) => `${v} columns of D`, m: (v) => `${v} rows of D`,
      },
      examples: [["128 × 128, FP16 in, FP32 sums: steps 1 to 8", 0x08200010n], ["256 × 256 of a pair of CTAs: steps 9 and 10", 0x10400010n], ["128 × 128, BF16 in, FP32 sums", 0x08200490n], ["M = 96: no such MMA", 0x06200010n]],
    },
  };

  lib.define("descriptor", function (root) {
    let kind = root.dataset.kind === "instruction" ? "instruction" : "matrix";
    let bits = KINDS[kind].examples[0][1];
    let ctas = 1;
    const hex = () => "0x" + bits.toString(16).padStart(KINDS[kind].width / 4, "0");
    const inputId = lib.id();
    const input = el("input", { id: inputId, type: "text", spellcheck: "false", autocomplete: "off", oninput: () => {
      const text = input.value.trim().replaceAll("_", "");
      const isNumber = /^(0x[0-9a-f]+|\d+)$/i.test(text);
      const value = isNumber ? BigInt(text) : -1n;
      if (value < 0n || value >= 1n << BigInt(KINDS[kind].width)) {
        input.setAttribute("aria-invalid", "true");
        steps.says.textContent = `This is no number of ${KINDS[kind].width} bits. Numbers like 0x4000404000000000 and 136314896 are.`;
        return;
      }
      input.removeAttribute("aria-invalid");
      bits = value;
      refresh(false);
    } });
    const form = el("div", { class: "figure-table figure-fields", tabindex: 0, role: "region", "aria-label": "Fields of the descriptor" });

    function decoded() {
      return kind === "matrix" ? formulas.matrix(bits) : formulas.instruction(bits, ctas);
    }
    function words() {
      const all = decoded();
      if (all.wrong) return `${hex()}: not allowed. It has ${all.wrong}.`;
      if (kind === "matrix") return `${hex()}: a tile at byte ${all.start}, swizzle ${SWIZZLE[all.swizzle]}, ${all.stride} bytes from eight rows to the next eight.`;
      return `${hex()}: D is ${all.m} × ${all.n} in ${all.d ? "FP32" : "FP16"}, A in ${all.a ? "BF16" : "FP16"}, B in ${all.b ? "BF16" : "FP16"}.`;
    }
    function fieldRows() {
      const { layout, words: names, means } = KINDS[kind];
      const all = formulas.fields(layout, bits);
      return layout.map(([name, low, width, scale], at) => {
        const label = names[name];
        const box = el("input", { type: "number", "aria-label": label, min: 0, max: ((2 ** width) - 1) * scale, step: scale, value: all[name], onchange: () => {
          const typed = Math.min(Math.max(Math.floor(Number(box.value) || 0), 0), ((2 ** width) - 1) * scale);
          // Bits that belong to no field stay.
          const mask = ((1n << BigInt(width)) - 1n) << BigInt(low);
          bits = (bits & ~mask) | (formulas.pack(layout, { [name]: typed }) & mask);
          refresh(true);
        } });
        const place = width === 1 ? `bit ${low}` : `bits ${low}–${low + width - 1}`;
        return [el("span", {}, el("span", { class: `f-key ${colour(at)}` }), `${label} `, el("span", { class: "figure-aside" }, place)), box, means[name](all[name])];
      });
    }
    const picture = lib.picture((width) => {
      const { layout, width: count, words: names } = KINDS[kind];
      const perLine = width < 480 ? 16 : 32;
      const cell = Math.floor((width - 2) / perLine);
      const parts = [];
      for (let bit = 0; bit < count; bit += 1) {
        // The highest bit first, as a number is written.
        const from = count - 1 - bit;
        const [x, y] = [1 + (bit % perLine) * cell, 14 + Math.floor(bit / perLine) * 42];
        const at = layout.findIndex(([, low, wide]) => from >= low && from < low + wide);
        const one = (bits >> BigInt(from)) & 1n;
        parts.push(lib.rect(x, y, cell, 22, `f-cell ${at < 0 ? "f-none" : colour(at)}`, at < 0 ? `bit ${from}` : `bit ${from}: ${names[layout[at][0]]}`));
        parts.push(lib.text(x + cell / 2, y + 16, String(one), "f-inside", "middle"));
        if (from % 8 === 7 || from % 8 === 0) parts.push(lib.text(x + cell / 2, y - 3, String(from), "f-tick f-small", "middle"));
      }
      return lib.sheet(width, 14 + Math.ceil(count / perLine) * 42, `The bits of ${hex()}, the highest first`, ...parts);
    });
    function refresh(withNumber) {
      if (withNumber) { input.value = hex(); input.removeAttribute("aria-invalid"); }
      const focused = form.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
      form.replaceChildren(lib.table(["field", "value", "means"], fieldRows(), "Fields: change one, and the number follows").firstChild);
      if (focused) form.querySelector(`[aria-label="${focused}"]`).focus();
      picture.again();
      steps.says.textContent = words();
    }
    const steps = lib.stepper({
      label: "Examples",
      count: () => KINDS[kind].examples.length,
      show: (at) => {
        const [name, number] = KINDS[kind].examples[at];
        bits = number;
        if (kind === "instruction") { ctas = number === 0x10400010n ? 2 : 1; group.select.value = String(ctas); }
        refresh(true);
        return `Example: ${name}. ${words()}`;
      },
    });
    const group = lib.choice("CTAs of the MMA", [["1", "1"], ["2", "2"]], "1", (value) => { ctas = Number(value); refresh(true); });
    group.hidden = kind !== "instruction";
    const controls = el("div", { class: "figure-controls" },
      lib.choice("descriptor", Object.entries(KINDS).map(([key, { name }]) => [key, name]), kind, (value) => {
        kind = value;
        group.hidden = kind !== "instruction";
        steps.go(0);
      }), group, el("span", { class: "figure-field" }, el("label", { for: inputId }, "number"), input), el("span", { class: "figure-field" }, el("span", {}, "examples"), steps));
    const asked = /^0x[0-9a-f]+$/i.test(root.dataset.value || "") ? BigInt(root.dataset.value) : null;
    lib.frame(root, "a descriptor and its fields", [controls, picture, steps.says, form], steps);
    steps.go(0);
    if (asked !== null && asked < 1n << BigInt(KINDS[kind].width)) {
      bits = asked;
      refresh(true);
    }
  });
})();
