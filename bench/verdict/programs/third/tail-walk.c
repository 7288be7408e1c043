/* A queue of orders as a linked list whose end is looked for at each append; the fix keeps a pointer to the last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order {
	int customer, amount;
	char item[24];
	struct order *next;
};

struct queue {
	struct order *first, *last;
};

static struct order *order_new(unsigned seed)
{
	static const char *items[] = {"paper", "pencil", "ruler", "stapler", "envelope"};
	struct order *order = malloc(sizeof *order);
	order->customer = (int)(seed % 997);
	order->amount = (int)(seed / 7 % 40);
	strcpy(order->item, items[seed % 5]);
	order->next = NULL;
	return order;
}

__attribute__((noinline)) static void queue_append(struct queue *queue, struct order *order)
{
	struct order **end = &queue->first;
#ifdef AFTER
	if (queue->last)
		end = &queue->last->next;
#else
	while (*end)
		end = &(*end)->next; /* SLOW */
#endif
	*end = order;
	queue->last = order;
}

static long totals(const struct queue *queue)
{
	long sums[1000] = {0}, all = 0;
	for (const struct order *order = queue->first; order; order = order->next)
		sums[order->customer] += order->amount * (long)strlen(order->item);
	for (int i = 0; i < 1000; i++)
		all += sums[i] * (i + 1);
	return all;
}

int main(void)
{
	long all = 0;
	for (int day = 0; day < 14; day++) {
		struct queue queue = {0};
		unsigned seed = 17u * (unsigned)day + 1;
		for (int i = 0; i < 9000; i++) {
			seed = seed * 1103515245u + 12345u;
			queue_append(&queue, order_new(seed >> 8));
		}
		all += totals(&queue);
		for (struct order *order = queue.first, *next; order; order = next) {
			next = order->next;
			free(order);
		}
	}
	fprintf(stderr, "%ld\n", all);
	return 0;
}
