/* Builds and frees a list of small nodes for each batch, so that the heap grows and is trimmed each time;
 * the fix takes nodes from an arena that is kept. */
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 60000, BATCHES = 1200 };

struct node {
	struct node *next;
	long value;
};

#ifdef AFTER
static struct node arena[NODES];
static size_t used;
#endif

__attribute__((noipa)) static struct node *make_node(struct node *next, long value)
{
#ifdef AFTER
	struct node *node = &arena[used++];
#else
	struct node *node = malloc(sizeof *node); /* SLOW */
#endif
	node->next = next;
	node->value = value;
	return node;
}

__attribute__((noipa)) static long run_batch(int batch)
{
	struct node *list = NULL;
	long sum = 0;
	for (int i = 0; i < NODES; i++)
		list = make_node(list, i ^ batch);
	for (struct node *node = list; node; node = node->next)
		sum += node->value;
#ifdef AFTER
	used = 0;
#else
	while (list) {
		struct node *next = list->next;
		free(list);
		list = next;
	}
#endif
	return sum;
}

int main(void)
{
	long sum = 0;
	for (int batch = 0; batch < BATCHES; batch++)
		sum += run_batch(batch);
	fprintf(stderr, "%ld\n", sum);
	return 0;
}
