// A fixed amount of work, in functions of which many are inlined: sorts, maps, strings.
'use strict';
function words(n) { return Array.from({ length: n }, (_, i) => `w${Math.imul(i, 7919) % 1000}`); }
function count(all) { const counts = new Map(); for (const word of all) counts.set(word, (counts.get(word) ?? 0) + 1); return counts; }
function ranked(counts) { return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)); }
let sink = 0;
for (let i = 0; i < 220; i++) sink += ranked(count(words(20000)))[0][1];
console.log(sink);
