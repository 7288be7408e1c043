// Marks key words in lines with a regular expression that is made for each word and line; the fix makes them once.
const after = process.argv[2] === 'after';
const keywords = [];
for (let i = 0; i < 150; i++) keywords.push('key' + i * 7 + 'word');
const made = keywords.map((word) => new RegExp('\\b' + word + '\\b', 'gi'));

function highlight(line, round) {
  let out = line;
  for (let i = 0; i < keywords.length; i++) {
    const pattern = after ? made[i] : new RegExp('\\b(?:' + keywords[i] + '|' + keywords[i] + round + ')\\b', 'gi'); // SLOW
    out = out.replace(pattern, '<b>$&</b>');
  }
  return out;
}

let length = 0;
for (let round = 0; round < 400; round++) {
  const line = `at ${round} the key${(round % 150) * 7}word was seen near key${((round * 3) % 200) * 7}word, again`;
  length += highlight(line, round).length;
}
console.error(length);
