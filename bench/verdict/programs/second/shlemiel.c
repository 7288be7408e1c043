/* Joins words with strcat, which looks for the end each time; the fix remembers the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 40000, ROUNDS = 4 };

__attribute__((noipa)) static size_t join(char *line, const char *const *words, int count)
{
	char *end = line;
	*line = 0;
	for (int i = 0; i < count; i++) {
#ifdef AFTER
		size_t length = strlen(words[i]);
		memcpy(end, words[i], length + 1);
		end += length;
#else
		strcat(line, words[i]); /* SLOW */
#endif
	}
	(void)end;
	return strlen(line);
}

int main(void)
{
	static const char *const some[] = { "plain ", "common ", "words ", "of a text " };
	const char **words = malloc(WORDS * sizeof *words);
	char *line = malloc(WORDS * 12);
	size_t total = 0;
	for (int i = 0; i < WORDS; i++)
		words[i] = some[i % 4];
	for (int round = 0; round < ROUNDS; round++)
		total += join(line, words, WORDS) + strlen(line);
	fprintf(stderr, "%zu\n", total);
	return 0;
}
