// The game of life on typed arrays: well made, nothing to mend.
const size = 512;
let now = new Uint8Array(size * size), next = new Uint8Array(size * size);
let state = 5;
for (let i = 0; i < now.length; i++) {
  state = (state * 48271) % 2147483647;
  now[i] = state & 1;
}

function step(now, next) {
  for (let row = 1; row < size - 1; row++) {
    for (let column = 1; column < size - 1; column++) {
      const at = row * size + column;
      const count = now[at - size - 1] + now[at - size] + now[at - size + 1] + now[at - 1] + now[at + 1] + now[at + size - 1] + now[at + size] + now[at + size + 1];
      next[at] = count === 3 || (count === 2 && now[at]) ? 1 : 0;
    }
  }
}

for (let round = 0; round < 700; round++) {
  step(now, next);
  [now, next] = [next, now];
}
console.error(now.reduce((sum, cell) => sum + cell, 0));
