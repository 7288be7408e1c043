/* Follows a list of 1 million nodes that lie in memory at random; the fix stores them in the order of the list. */
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 1 << 20 };

struct node {
	struct node *next;
	long cost;
	char payload[48];
};

__attribute__((noipa)) static long route_cost(const struct node *node)
{
	long cost = 0;
	for (; node; node = node->next) /* SLOW */
		cost += node->cost;
	return cost;
}

int main(void)
{
	struct node *nodes = calloc(NODES, sizeof *nodes);
	unsigned *order = malloc(NODES * sizeof *order), seed = 1;
	for (unsigned i = 0; i < NODES; i++)
		order[i] = i;
#ifndef AFTER
	for (unsigned i = NODES - 1; i; i--) {
		seed = seed * 1664525 + 1013904223;
		unsigned other = (seed >> 4) % (i + 1), kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
#endif
	(void)seed;
	for (unsigned i = 0; i < NODES; i++) {
		nodes[order[i]].next = i + 1 < NODES ? &nodes[order[i + 1]] : NULL;
		nodes[order[i]].cost = i & 255;
	}
	long cost = 0;
	for (int round = 0; round < 5; round++)
		cost += route_cost(&nodes[order[0]]);
	fprintf(stderr, "%ld\n", cost);
	return 0;
}
