// Burns processor time in functions that are called in many ways, through V8's own functions too, and prints how much in each.
//
// A line for each way: the functions from the outermost to the innermost, and the nanoseconds of processor time and of elapsed time.
'use strict';
const seconds = Number(process.argv[2]);
const spent = new Map();
let sink = 0;

function processor() {
  const used = process.cpuUsage();
  return (used.user + used.system) * 1000;
}

function spin(count) {
  let sum = 1;
  for (let i = 0; i < count; i++) sum = (Math.imul(sum, 31) + i) ^ (sum >>> 7);
  return sum;
}

function burn(way, share = 1) {
  const started = process.hrtime.bigint();
  const begin = processor();
  const end = begin + seconds * share * 1e9;
  let now = begin;
  while (now < end) {
    for (let i = 0; i < 40; i++) sink += spin(500);
    now = processor();
  }
  const [cpu, elapsed] = spent.get(way) ?? [0, 0];
  spent.set(way, [cpu + now - begin, elapsed + Number(process.hrtime.bigint() - started)]);
}

function plain() {
  burn('main;plain;burn');
}

class Worker {
  method() {
    burn('main;method;burn');
  }

  get got() {
    burn('main;get got;burn');
    return 1;
  }

  static fixed() {
    burn('main;fixed;burn');
  }
}

function mapping() {
  const each = () => burn('main;mapping;each;burn', 1 / 20);
  Array.from({ length: 20 }, (_, i) => i).map(each);
}

function sorting() {
  let calls = 0;
  const compares = (a, b) => {
    if (calls++ < 20) burn('main;sorting;compares;burn', 1 / 20);
    return a - b;
  };
  Array.from({ length: 40 }, (_, i) => -i).sort(compares);
}

function generating() {
  function* numbers() {
    for (let i = 0; i < 20; i++) {
      burn('main;generating;numbers;burn', 1 / 20);
      yield i;
    }
  }
  for (const _ of numbers());
}

function replacing() {
  const replaces = () => {
    burn('main;replacing;replaces;burn', 1 / 20);
    return 'b';
  };
  'a'.repeat(20).replace(/a/g, replaces);
}

function größe() {
  burn('main;größe;burn');
}

function deeper(depth) {
  return depth > 0 ? deeper(depth - 1) + 1 : (burn(`main;${'deeper;'.repeat(61)}burn`), 0);
}

const made = new Function('burn', 'return function made() { burn("main;made;burn"); }')(burn);

async function waiting() {
  for (let i = 0; i < 10; i++) {
    await null;
    burn('waiting;burn', 1 / 10);
  }
}

function main() {
  const worker = new Worker();
  plain();
  worker.method();
  sink += worker.got;
  Worker.fixed();
  mapping();
  sorting();
  generating();
  replacing();
  größe();
  deeper(60);
  made();
}

main();
waiting().then(() => {
  setTimeout(function timer() {
    burn('timer;burn');
    for (const [way, [cpu, elapsed]] of spent) console.log(`${way} ${Math.round(cpu)} ${elapsed}`);
    if (sink === 12345) console.log(sink);
  }, 1);
});
