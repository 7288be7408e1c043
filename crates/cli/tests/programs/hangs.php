<?php
// Prints its own stack as PHP knows it, innermost first: function, file and line, and then waits in a C function that is called in the
// same line. On the way are methods and a call from C.

/** Functions that are written in PHP, each with the line that it is in. */
function stack(): array
{
    $calls = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    $place = [$calls[0]['file'], $calls[0]['line']];
    $frames = [];
    foreach (array_slice($calls, 1) as $call) {
        $name = $call['function'];
        $of_c = !isset($call['class']) && function_exists($name) && (new ReflectionFunction($name))->isInternal();
        if (!$of_c) {
            $class = isset($call['class']) ? $call['class'] . '::' : '';
            $frames[] = [$class . $name, ...$place];
        }
        $place = [$call['file'] ?? '', $call['line'] ?? 0];
    }
    $frames[] = ['<main>', ...$place];
    return $frames;
}

function tell(array $frames): void
{
    foreach ($frames as [$name, $file, $line]) {
        echo "$name\t$file\t$line\n";
    }
    echo "hangs\n";
}

class Waiter
{
    private static function sits(int $seconds): void
    {
        [tell(stack()), fflush(STDOUT), sleep($seconds)];
    }

    public function waits(array $all): array
    {
        return array_map(
            function (int $seconds): void {
                self::sits($seconds);
            },
            $all,
        );
    }
}

(new Waiter())->waits([3600]);
