// Likewise.
const UNIT = 200000;
function sixty(x) { for (let i = 0; i < 6 * UNIT; i++) x = (Math.imul(x, 1664525) + 1013904223) >>> 0; return x; }
function thirty(x) { for (let i = 0; i < 3 * UNIT; i++) x = (Math.imul(x, 1664525) + 1013904223) >>> 0; return x + 1; }
function ten(x) { for (let i = 0; i < UNIT; i++) x = (Math.imul(x, 1664525) + 1013904223) >>> 0; return x + 2; }
const words = globalThis.process ? process.argv : globalThis.Deno ? ["", "", ...Deno.args] : ["", "", scriptArgs[1]];
const end = Date.now() + 1000 * Number(words[2] || 3);
let x = 1;
while (Date.now() < end) x = ten(thirty(sixty(x)));
