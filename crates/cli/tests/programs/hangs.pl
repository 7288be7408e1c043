# Prints its own stack as Perl knows it, innermost first: function, file and line, and then waits in a C function that is called in the same
# function. On the way are methods, and a function in no package that C calls.

use strict;
use warnings;

package Waiter;

sub new { return bless {}, shift }

sub sits {
    my $seconds = shift;
    my $line = __LINE__ + 7;
    for (my $depth = 0; my @call = caller($depth); $depth++) {
        # Each call says where it was made from; the innermost goes on.
        print "$call[3]\t$call[1]\t$line\n";
        $line = $call[2];
    }
    print "<main>\t$0\t$line\nhangs\n";
    sleep $seconds;
    return 0;
}

sub waits {
    my ($self, @all) = @_;
    my sub compare { return sits($a) }
    my @sorted = sort compare @all;
    return @sorted;
}

package main;

$| = 1;
Waiter->new->waits(3600, 3601);
