// Clean: random numbers in a typed array, mixed by integer arithmetic that is compiled well.
'use strict';

function mix(words, rounds) {
  let x = 88675123 | 0;
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < words.length; i++) {
      x ^= x << 13;
      x ^= x >>> 17;
      x ^= x << 5;
      words[i] = (words[i] + x) | 0;
    }
  }
  return words[7];
}

console.error(mix(new Int32Array(4096), 130000));
