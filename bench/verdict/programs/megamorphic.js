// Reads a property of objects of 24 shapes at one place; the fix gives all one shape.
'use strict';

function makeItems(count, after) {
  const items = [];
  for (let i = 0; i < count; i++) {
    const item = {};
    if (!after) for (let k = 0; k < i % 24; k++) item['extra' + k] = 0;
    item.price = i % 100;
    items.push(item);
  }
  return items;
}

function totalPrice(items) {
  let total = 0;
  for (const item of items) total += item.price; // SLOW
  return total;
}

const items = makeItems(4000, process.argv[2] === 'after');
let total = 0;
for (let round = 0; round < 60000; round++) total += totalPrice(items);
console.error(total);
