<?php
// Short functions that C calls: from array_map, usort and a generator. Its argument is how long, in seconds.

function adds(int $value): int
{
    return $value + 1;
}

function compares(int $left, int $right): int
{
    return $left <=> $right;
}

function yields(int $count): Generator
{
    for ($i = 0; $i < $count; $i++) {
        yield $i;
    }
}

$list = range(1, 200);
$sum = 0;
$until = hrtime(true) + (int) ($argv[1] * 1e9);
while (hrtime(true) < $until) {
    $sum += array_sum(array_map('adds', $list)) + array_sum(iterator_to_array(yields(200)));
    shuffle($list);
    usort($list, 'compares');
}
