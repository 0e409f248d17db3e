// What figures compute themselves. `book/tests/browser/formulas.mjs` holds each against what the emulator does.
(function (root) {
  "use strict";

  // Swizzle modes: which bits of an address are taken, and where they are put (PTX ISA, tensor swizzling modes).
  const SWIZZLES = {
    none: { name: "none", span: 128, terms: [] },
    b32: { name: "32 bytes", span: 32, terms: [[7, 1, 4]] },
    b64: { name: "64 bytes", span: 64, terms: [[7, 3, 4]] },
    b128: { name: "128 bytes", span: 128, terms: [[7, 7, 4]] },
    b128_atom32: { name: "128 bytes, atoms of 32", span: 128, terms: [[7, 3, 5]] },
    b128_atom32_flip8: { name: "128 bytes, atoms of 32, halves exchanged", span: 128, terms: [[7, 3, 5], [7, 1, 3]] },
    b128_atom64: { name: "128 bytes, atoms of 64", span: 128, terms: [[7, 1, 6]] },
  };
  function swizzle(mode, address) {
    return SWIZZLES[mode].terms.reduce((to, [from, mask, at]) => to ^ (((address >>> from) & mask) << at), address);
  }

  // Shared memory has 32 banks of 4 bytes (CUDA Programming Guide, shared memory).
  const bank = (address) => (address >>> 2) & 31;
  // How often the busiest bank is asked for different words: so many turns the access takes.
  function turns(addresses, bytes) {
    const words = Array.from({ length: 32 }, () => new Set());
    for (const address of addresses) for (let at = 0; at < bytes; at += 4) words[bank(address + at)].add((address + at) >>> 2);
    return { counts: words.map((set) => set.size), turns: Math.max(...words.map((set) => set.size)) };
  }

  // The matrix descriptor (PTX ISA 9.7.16.4.1): name, lowest bit, bits, and by what the field is multiplied.
  const MATRIX = [
    ["start", 0, 14, 16], ["leading", 16, 14, 16], ["stride", 32, 14, 16], ["constant", 46, 3, 1], ["base", 49, 3, 1], ["mode", 52, 1, 1], ["swizzle", 61, 3, 1],
  ];
  const MATRIX_SWIZZLES = { 0: 0, 1: 128, 2: 128, 4: 64, 6: 32 };
  // The instruction descriptor of kind::f16 (PTX ISA 9.7.16.4.2).
  const INSTRUCTION = [
    ["d", 4, 2, 1], ["a", 7, 3, 1], ["b", 10, 3, 1], ["negate_a", 13, 1, 1], ["negate_b", 14, 1, 1], ["a_mn_major", 15, 1, 1], ["b_mn_major", 16, 1, 1],
    ["n", 17, 6, 8], ["m", 24, 5, 16],
  ];
  function fields(layout, bits) {
    return Object.fromEntries(layout.map(([name, low, width, scale]) => [name, Number((bits >> BigInt(low)) & ((1n << BigInt(width)) - 1n)) * scale]));
  }
  function pack(layout, values) {
    return layout.reduce((bits, [name, low, width, scale]) => bits | ((BigInt(Math.floor((values[name] || 0) / scale)) & ((1n << BigInt(width)) - 1n)) << BigInt(low)), 0n);
  }

  function matrix(bits) {
    const all = fields(MATRIX, bits);
    let wrong = null;
    if (MATRIX_SWIZZLES[all.swizzle] === undefined) wrong = `the swizzle code ${all.swizzle} in bits 61 to 63: there are 0 (none), 1 (128 bytes, atoms of 32), 2 (128 bytes), 4 (64 bytes), 6 (32 bytes)`;
    else if (all.constant !== 1) wrong = `${all.constant} in bits 46 to 48: Blackwell's descriptors hold the constant 1 there, Hopper's do not`;
    // Without a swizzle there is no pattern whose place a base offset could tell.
    else if ((all.swizzle !== 0 && all.base !== 0) || all.mode !== 0) wrong = "a base offset, or an absolute leading dimension: the emulator models neither";
    return { ...all, bytes: MATRIX_SWIZZLES[all.swizzle], wrong };
  }

  function instruction(bits, ctas) {
    const all = fields(INSTRUCTION, bits);
    const shapes = ctas === 1 ? [64, 128] : [128, 256];
    const step = ctas === 1 ? 8 : 16;
    let wrong = null;
    if ((bits & 0xe080004fn) !== 0n) wrong = "bits that are zero for kind::f16: 0 to 3, 6, 23 and 29 to 31";
    else if (!shapes.includes(all.m) || all.n === 0 || all.n > 256 || all.n % step !== 0) wrong = `M = ${all.m}, N = ${all.n}: with cta_group::${ctas}, M is ${shapes.join(" or ")} and N a multiple of ${step} up to 256`;
    else if (all.d > 1 || all.a > 1 || all.b > 1) wrong = `formats D = ${all.d}, A = ${all.a}, B = ${all.b}: D is 0 (FP16) or 1 (FP32), A and B 0 (FP16) or 1 (BF16)`;
    else if (all.d === 0 && (all.a === 1 || all.b === 1)) wrong = "BF16 products that are summed in FP16: an FP16 accumulator takes FP16 operands";
    return { ...all, wrong };
  }

  root.bookFormulas = { SWIZZLES, swizzle, bank, turns, MATRIX, INSTRUCTION, fields, pack, matrix, instruction };
})(globalThis);
