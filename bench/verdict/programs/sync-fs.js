// Opens, appends to and closes a log for each record; the fix collects records and writes them at once.
'use strict';
const fs = require('fs');

const pending = [];

function note(record) {
  if (process.argv[2] === 'after') {
    pending.push(record);
    return;
  }
  fs.appendFileSync('app.log', record); // SLOW
}

for (let i = 0; i < 160000; i++) note(`record ${i}\n`);
if (pending.length) fs.appendFileSync('app.log', pending.join(''));
console.error(fs.statSync('app.log').size);
