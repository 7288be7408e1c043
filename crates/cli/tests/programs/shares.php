<?php
// Ways to a function that works, each for the same time: calls, methods, calls from C (array_map, usort), a generator, a function of
// another file, recursion. Prints what each way took: its name, the processor's and the clock's nanoseconds.

function spin(float $seconds): int
{
    $until = hrtime(true) + (int) ($seconds * 1e9);
    $sum = 0;
    while (hrtime(true) < $until) {
        for ($i = 0; $i < 500; $i++) {
            $sum = ($sum + $i * 3) & 0xffff;
        }
    }
    return $sum;
}

function calls(float $seconds): int
{
    return 1 + spin($seconds);
}

class Worker
{
    public function runs(float $seconds): int
    {
        return 1 + spin($seconds);
    }

    public static function helps(float $seconds): int
    {
        return 1 + (new self())->runs($seconds);
    }
}

function maps(float $seconds): int
{
    $works = function (float $part): int {
        return spin($part);
    };
    return array_sum(array_map($works, [$seconds / 2, $seconds / 2]));
}

function sorts(float $seconds): int
{
    $numbers = [3, 1, 2];
    $done = false;
    usort($numbers, function (int $a, int $b) use ($seconds, &$done): int {
        $done = $done || Worker::helps($seconds) > 0;
        return $a <=> $b;
    });
    return $numbers[0];
}

function yields(float $seconds): Generator
{
    yield spin($seconds / 2);
    yield spin($seconds / 2);
}

function iterates(float $seconds): int
{
    return array_sum(iterator_to_array(yields($seconds), false));
}

function descends(int $depth, float $seconds): int
{
    return $depth > 0 ? 1 + descends($depth - 1, $seconds) : spin($seconds);
}

// Most of the time is in C, below a PHP function.
function hashes(float $seconds): int
{
    $text = str_repeat('plumb', 100000);
    $until = hrtime(true) + (int) ($seconds * 1e9);
    $count = 0;
    while (hrtime(true) < $until) {
        $count += strlen(hash('sha256', $text));
    }
    return $count;
}

function processor(): int
{
    $used = getrusage();
    return ($used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec']) * 1000000000
        + ($used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec']) * 1000;
}

$ways = [
    'calls;spin' => fn (float $s) => calls($s),
    'Worker::helps;Worker::runs;spin' => fn (float $s) => Worker::helps($s),
    'maps;spin' => fn (float $s) => maps($s),
    'sorts;Worker::helps;Worker::runs;spin' => fn (float $s) => sorts($s),
    'iterates;yields;spin' => fn (float $s) => iterates($s),
    'descends;descends;descends;descends;spin' => fn (float $s) => descends(3, $s),
    'hashes' => fn (float $s) => hashes($s),
];
foreach ($ways as $name => $way) {
    $processor = processor();
    $clock = hrtime(true);
    $way((float) $argv[1]);
    printf("%s %d %d\n", $name, processor() - $processor, hrtime(true) - $clock);
}
