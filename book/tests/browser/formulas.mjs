// Holds what figures compute themselves (figures/formulas.js) against what the emulator did: node formulas.mjs SAID, where SAID is a file with
// what `book formulas` printed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const said = JSON.parse(readFileSync(process.argv[2], "utf8"));
createRequire(import.meta.url)("../../figures/formulas.js");
const { swizzle, matrix, instruction } = globalThis.bookFormulas;
const wrong = [];
let compared = 0;
for (const [mode, places] of Object.entries(said.swizzles)) {
  places.forEach((place, piece) => {
    compared += 1;
    if (swizzle(mode, piece * 8) !== place) wrong.push(`swizzle ${mode}: byte ${piece * 8} goes to ${place}, the figure says ${swizzle(mode, piece * 8)}`);
  });
}
const refused = (what, bits, emulator, figure) => {
  compared += 1;
  if (emulator !== (figure !== null)) wrong.push(`${what} ${bits}: the emulator ${emulator ? "refuses" : "takes"} it, the figure says: ${figure ?? "allowed"}`);
};
for (const [bits, no] of said.matrices) refused("matrix descriptor", bits, no, matrix(BigInt(bits)).wrong);
for (const [bits, ctas, no] of said.instructions) refused(`instruction descriptor, ${ctas} CTAs,`, bits, no, instruction(BigInt(bits), ctas).wrong);
console.log(`formulas: ${compared} answers of the emulator compared`);
for (const one of wrong) console.log(`FAILED ${one}`);
process.exit(wrong.length === 0 && compared > 1000 ? 0 : 1);
