// A loop of allocation, closures, strings, regular expressions and JSON, for so many seconds.
const until = Date.now() + 1000 * Number(process.argv[2] || 5);
class Node {
  constructor(key) { this.key = key; this.left = this.right = null; }
  insert(key) {
    const side = key < this.key ? "left" : "right";
    if (this[side]) this[side].insert(key);
    else this[side] = new Node(key);
  }
  depth() { return 1 + Math.max(this.left ? this.left.depth() : 0, this.right ? this.right.depth() : 0); }
}
let seed = 1, sum = 0;
const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648);
function round() {
  const root = new Node(random());
  for (let i = 0; i < 2000; i++) root.insert(random());
  const words = Array.from({ length: 2000 }, (_, i) => `word${i % 97}-${random()}`);
  const sorted = words.map((word) => word.replace(/([0-9])-/g, "$1+")).sort((a, b) => a.localeCompare(b));
  const text = JSON.stringify({ sorted, depth: root.depth() });
  return JSON.parse(text).sorted.filter((word) => /7\+/.test(word)).length;
}
while (Date.now() < until) sum += round();
console.log(sum);
