<?php // Likewise.
// Numbers, as the product of a constant is made anew each time.
function sixty($x) { for ($i = 0; $i < 1200000; $i++) $x = ($x * 1664525 + 1013904223) & 0xffffffff; return $x; }
function thirty($x) { for ($i = 0; $i < 600000; $i++) $x = ($x * 1664525 + 1013904223) & 0xffffffff; return $x; }
function ten($x) { for ($i = 0; $i < 200000; $i++) $x = ($x * 1664525 + 1013904223) & 0xffffffff; return $x; }
$finish = microtime(true) + $argv[1];
$x = 1;
while (microtime(true) < $finish) $x = ten(thirty(sixty($x)));
