// Prints its own stack as V8 knows it, innermost first: function, file and line, and then waits in a function of V8's own. On the way are a method and a
// function that V8 calls.
'use strict';

class Waiter {
  sits(seconds) {
    const prepare = Error.prepareStackTrace;
    Error.prepareStackTrace = (_, sites) => sites;
    const sites = new Error().stack.filter((site) => site.getFileName() === __filename);
    Error.prepareStackTrace = prepare;
    // The name of the module's own function is not known.
    for (const site of sites.slice(0, -1)) console.log(`${site.getFunctionName()}\t${site.getFileName()}\t${site.getLineNumber()}`);
    console.log('hangs'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000 * seconds);
  }

  waits(all) {
    const sitting = (seconds) => this.sits(seconds);
    return all.map(sitting);
  }
}

function main() {
  new Waiter().waits([3600, 3601]);
}

main();
