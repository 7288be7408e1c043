// Makes a new array for each entry; the fix pushes.
'use strict';

function collect(count, after) {
  let all = [];
  for (let i = 0; i < count; i++) {
    if (after) all.push(i);
    else all = [...all, i]; // SLOW
  }
  return all;
}

console.error(collect(60000, process.argv[2] === 'after').length);
