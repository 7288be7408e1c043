# Likewise.
use integer; use Time::HiRes 'time';
my $unit = 40000;
sub sixty { my $x = shift; for (my $i = 0; $i < 6 * $unit; $i++) { $x = ($x * 1664525 + 1013904223) & 0xffffffff } return $x }
sub thirty { my $x = shift; for (my $i = 0; $i < 3 * $unit; $i++) { $x = ($x * 1664525 + 1013904223) & 0xffffffff } return $x }
sub ten { my $x = shift; for (my $i = 0; $i < $unit; $i++) { $x = ($x * 1664525 + 1013904223) & 0xffffffff } return $x }
my $finish = time + $ARGV[0];
my $x = 1;
$x = ten(thirty(sixty($x))) while time < $finish;
