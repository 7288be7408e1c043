/* A server that builds the answer to each request from small blocks and frees it again: rounds of 1,000 blocks of 4 KiB, some of
 * which it writes to, and some work on them. heap ROUNDS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 1000
#define BYTES 4096

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 500;
    unsigned long sum = 0;
    for (long round = 0; round < rounds; round++) {
        char *blocks[BLOCKS];
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(BYTES);
            memset(blocks[i], (int)(round + i), BYTES);
        }
        for (int i = 0; i < BLOCKS; i++)
            for (int at = 0; at < BYTES; at += 16)
                sum = sum * 31 + (unsigned char)blocks[i][at];
        for (int i = BLOCKS; i-- > 0;)
            free(blocks[i]);
    }
    printf("%lu\n", sum);
    return 0;
}
