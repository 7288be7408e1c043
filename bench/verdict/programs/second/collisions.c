/* A hash table whose hash takes the first letter alone: all names are in one chain; the fix takes all letters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096, NAMES = 3000, ASKED = 120000 };

struct entry {
	struct entry *next;
	char name[24];
	int value;
};

static struct entry *buckets[BUCKETS];

static unsigned hash(const char *name)
{
#ifdef AFTER
	unsigned sum = 2166136261u;
	for (; *name; name++)
		sum = (sum ^ (unsigned char)*name) * 16777619u;
	return sum % BUCKETS;
#else
	return (unsigned char)*name % BUCKETS;
#endif
}

__attribute__((noipa)) static struct entry *find(const char *name)
{
	struct entry *entry = buckets[hash(name)];
	while (entry && strcmp(entry->name, name)) /* SLOW */
		entry = entry->next;
	return entry;
}

int main(void)
{
	char name[24];
	long total = 0;
	for (int i = 0; i < NAMES; i++) {
		struct entry *entry = malloc(sizeof *entry);
		snprintf(entry->name, sizeof entry->name, "user-%06d", i);
		entry->value = i;
		entry->next = buckets[hash(entry->name)];
		buckets[hash(entry->name)] = entry;
	}
	for (int i = 0; i < ASKED; i++) {
		snprintf(name, sizeof name, "user-%06d", i * 7 % NAMES);
		total += find(name)->value;
	}
	fprintf(stderr, "%ld\n", total);
	return 0;
}
