"""Clean: compresses 24 MiB of text with zlib, all of it in one call for each MiB."""
import sys
import zlib


def compress_all(block, count):
    return sum(len(zlib.compress(block, 6)) for _ in range(count))


block = b"".join(b"%d;%d;line of a report\n" % (i, i * 7919 % 10007) for i in range(40000))
print(compress_all(block, 70), file=sys.stderr)
