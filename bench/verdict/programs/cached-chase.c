/* Follows a list of 256 nodes, all in the first cache: each step waits for the load before, not for memory;
 * the fix goes through an array. */
#include <stdio.h>

enum { NODES = 256 };

struct node {
	struct node *next;
	long cost;
};

static struct node nodes[NODES];
static long costs[NODES];

__attribute__((noipa)) static long list_cost(const struct node *node)
{
	long cost = 0;
#ifdef AFTER
	(void)node;
	for (int i = 0; i < NODES; i++)
		cost += costs[i];
#else
	for (; node; node = node->next) /* SLOW */
		cost += node->cost;
#endif
	return cost;
}

int main(void)
{
	for (int i = 0; i < NODES; i++) {
		nodes[i * 77 % NODES].next = i + 1 < NODES ? &nodes[(i + 1) * 77 % NODES] : NULL;
		nodes[i * 77 % NODES].cost = costs[i] = i;
	}
	long cost = 0;
	for (int round = 0; round < 5000000; round++) {
		nodes[0].cost = costs[0] = round & 1;
		cost += list_cost(nodes);
	}
	fprintf(stderr, "%ld\n", cost);
	return 0;
}
