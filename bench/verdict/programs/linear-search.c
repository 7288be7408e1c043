/* Finds an account by going through all of them; the fix indexes them by number. */
#include <stdio.h>
#include <stdlib.h>

enum { ACCOUNTS = 4000, SLOTS = 16384 };

struct account {
	unsigned number;
	int balance;
	char owner[24];
};

static struct account accounts[ACCOUNTS];
static unsigned short slots[SLOTS];

/* The rest of the work: what a fix leaves. */
__attribute__((noipa)) static unsigned long settle(unsigned long value, int steps)
{
	while (steps--) {
		value ^= value << 13;
		value ^= value >> 7;
		value ^= value << 17;
	}
	return value;
}

static unsigned slot_of(unsigned number)
{
	return number * 2654435761u >> 18;
}

__attribute__((noipa)) static struct account *account_of(unsigned number)
{
#ifdef AFTER
	for (unsigned at = slot_of(number);; at = (at + 1) % SLOTS)
		if (accounts[slots[at]].number == number)
			return &accounts[slots[at]];
#else
	for (int i = 0; i < ACCOUNTS; i++)
		if (accounts[i].number == number) /* SLOW */
			return &accounts[i];
	return NULL;
#endif
}

int main(void)
{
	for (unsigned i = 0; i < ACCOUNTS; i++) {
		accounts[i].number = i * 7919 + 13;
		unsigned at = slot_of(accounts[i].number);
		while (slots[at])
			at = (at + 1) % SLOTS;
		slots[at] = i;
	}
	unsigned seed = 1;
	long sum = 0;
	for (int i = 0; i < 1300000; i++) {
		seed = seed * 1103515245 + 12345;
		struct account *account = account_of((seed >> 8) % ACCOUNTS * 7919 + 13);
		account->balance += settle(i + 1, 200) & 15;
		sum += account->balance;
	}
	fprintf(stderr, "%ld\n", sum);
	return 0;
}
