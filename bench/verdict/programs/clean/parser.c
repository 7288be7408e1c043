/* Clean: a state machine counts words, numbers and strings of a text that fits the cache. */
#include <stdio.h>

enum state { BETWEEN, WORD, NUMBER, STRING };

__attribute__((noipa)) static unsigned long count_tokens(const char *text)
{
	unsigned long tokens = 0;
	enum state state = BETWEEN;
	for (; *text; text++) {
		char c = *text;
		switch (state) {
		case STRING:
			if (c == '"')
				state = BETWEEN;
			break;
		case WORD:
		case NUMBER:
			if (c != ' ')
				break;
			state = BETWEEN;
			break;
		case BETWEEN:
			if (c == ' ')
				break;
			tokens++;
			state = c == '"' ? STRING : c >= '0' && c <= '9' ? NUMBER : WORD;
		}
	}
	return tokens;
}

int main(void)
{
	static char text[24001];
	static const char words[] = "total 42 \"a name\" price 1999 item ";
	for (int i = 0; i < 24000; i++)
		text[i] = words[i % (sizeof words - 1)];
	unsigned long tokens = 0;
	for (int round = 0; round < 50000; round++) {
		text[round % 24000] = words[round % 24000 % (sizeof words - 1)];
		tokens += count_tokens(text);
	}
	fprintf(stderr, "%lu\n", tokens);
	return 0;
}
