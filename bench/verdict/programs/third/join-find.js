// Joins orders with their customers by Array.find for each order; the fix makes a Map of customers.
const after = process.argv[2] === 'after';

function load() {
  const customers = [], orders = [];
  let state = 1;
  const next = () => (state = (state * 48271) % 2147483647);
  for (let i = 0; i < 4000; i++) customers.push({ id: i * 3 + 1, name: 'customer ' + i, region: next() % 9 });
  for (let i = 0; i < 60000; i++) orders.push({ number: i, customer: (next() % 4000) * 3 + 1, total: next() % 500 });
  return { customers, orders };
}

function perRegion(customers, orders) {
  const sums = new Array(9).fill(0);
  const byId = new Map(customers.map((one) => [one.id, one]));
  for (const order of orders) {
    const customer = after ? byId.get(order.customer) : customers.find((one) => one.id === order.customer); // SLOW
    sums[customer.region] += order.total;
  }
  return sums;
}

const { customers, orders } = load();
let sums;
for (let round = 0; round < 6; round++) sums = perRegion(customers, orders);
console.error(sums.join(' '));
