// Drops duplicates by asking an array whether it has them; the fix asks a Set.
'use strict';

function unique(values, after) {
  const seen = after ? new Set() : [];
  let count = 0;
  for (const value of values) {
    if (after ? seen.has(value) : seen.includes(value)) continue; // SLOW
    if (after) seen.add(value);
    else seen.push(value);
    count++;
  }
  return count;
}

const values = [];
for (let i = 0; i < 90000; i++) values.push(`user-${(i * 7919) % 30011}`);
console.error(unique(values, process.argv[2] === 'after'));
