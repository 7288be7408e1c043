/* Asks for the length of a text at each of its characters; the fix asks once. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

__attribute__((noipa)) static void to_lower(char *text)
{
#ifdef AFTER
	size_t length = strlen(text);
	for (size_t i = 0; i < length; i++)
#else
	for (size_t i = 0; i < strlen(text); i++) /* SLOW */
#endif
		if (text[i] >= 'A' && text[i] <= 'Z')
			text[i] += 'a' - 'A';
}

int main(void)
{
	static char text[20001];
	unsigned long sum = 0;
	for (int round = 0; round < 500; round++) {
		for (int i = 0; i < 20000; i++)
			text[i] = 'A' + (i + round) % 26;
		to_lower(text);
		sum += text[round];
	}
	fprintf(stderr, "%lu\n", sum);
	return 0;
}
