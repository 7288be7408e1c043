// Makes functions, runs each until it is optimized, and drops them, so that the collector frees and reuses their code and moves closures all the time.
// leaf_N is only called by mid_N, and that by top_N: a stack that says otherwise has a wrong name.
'use strict';
const seconds = Number(process.argv[2] ?? 10);
let sink = 0;
let garbage = [];
function make(n) {
  const text = `
    function leaf_${n}(count, text) { let sum = ${n}; for (let i = 0; i < count; i++) { sum = (Math.imul(sum, 31) + i) | 0; if ((i & 255) === 0) text.push({ i, sum }); } return sum; }
    function mid_${n}(count, text) { text.length = 0; return leaf_${n}(count, text) + leaf_${n}(count >> 1, text); }
    return function top_${n}(rounds, count) { let sum = 0; const text = []; for (let i = 0; i < rounds; i++) sum += mid_${n}(count, text); return sum; };`;
  return new Function(text)();
}
const end = Date.now() + 1000 * seconds;
let living = [];
for (let n = 0; Date.now() < end; n++) {
  living.push(make(n));
  if (living.length > 8) living.shift();
  for (const top of living) sink += top(20, 1500);
  // A string once where numbers were: the optimized code is thrown away.
  if (n % 3 === 0) sink += String(living[0](1, '40')).length;
  garbage.push(new Array(1000).fill(n));
  if (garbage.length > 200) garbage = [];
}
console.log(sink);
