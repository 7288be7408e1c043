<?php // Likewise.
const UNIT = 200000;
function sixty($x) { for ($i = 0; $i < 6 * UNIT; $i++) $x = ($x * 1664525 + 1013904223) & 0xffffffff; return $x; }
function thirty($x) { for ($i = 0; $i < 3 * UNIT; $i++) $x = ($x * 1664525 + 1013904223) & 0xffffffff; return $x; }
function ten($x) { for ($i = 0; $i < UNIT; $i++) $x = ($x * 1664525 + 1013904223) & 0xffffffff; return $x; }
$finish = microtime(true) + $argv[1];
$x = 1;
while (microtime(true) < $finish) $x = ten(thirty(sixty($x)));
