# Ways to a function that works, each for the same time: calls, methods, blocks and functions that C calls, evals, closures, recursion. Prints what
# each way took: its name, the processor's and the clock's nanoseconds.

use strict;
use warnings;
use List::Util qw(first);
use Time::HiRes qw(clock clock_gettime CLOCK_MONOTONIC);

sub spin {
    my $until = clock_gettime(CLOCK_MONOTONIC) + shift;
    my $sum = 0;
    while (clock_gettime(CLOCK_MONOTONIC) < $until) {
        for my $i (0 .. 500) {
            $sum = ($sum + $i * 3) & 0xffff;
        }
    }
    return $sum;
}

sub calls { return 1 + spin(shift) }

package Worker {
    sub new { return bless {}, shift }

    sub runs {
        my ($self, $seconds) = @_;
        return 1 + main::spin($seconds);
    }

    sub helps {
        my ($class, $seconds) = @_;
        return 1 + $class->new->runs($seconds);
    }

    sub DESTROY { }
}

# A destructor runs in a list of contexts of its own.
package Leaver {
    sub DESTROY { main::calls($_[0][0]) }
}

# C calls the block, which is in no function.
sub sorts {
    my $seconds = shift;
    my @sorted = sort { spin($seconds); $a <=> $b } (2, 1);
    return @sorted;
}

# C calls a function.
sub compares { spin($main::pause); return $a <=> $b }

sub sorts_by {
    local $main::pause = shift;
    my @sorted = sort compares (2, 1);
    return @sorted;
}

# So does C of a library.
sub is_wanted { spin($main::pause / 2); return $_ > 1 }

sub finds {
    local $main::pause = shift;
    return &first(\&is_wanted, 1, 2);
}

sub descends {
    my ($depth, $seconds) = @_;
    return $depth > 0 ? 1 + descends($depth - 1, $seconds) : spin($seconds);
}

sub tries {
    my $seconds = shift;
    return eval { calls($seconds) };
}

sub leaves {
    my $leaver = bless [shift], 'Leaver';
    undef $leaver;
    return;
}

my @ways = (
    ['main::calls;main::spin' => sub { calls(@_) }],
    ['Worker::helps;Worker::runs;main::spin' => sub { Worker->helps(@_) }],
    ['main::sorts;main::sorts;main::spin' => sub { sorts(@_) }],
    ['main::sorts_by;main::compares;main::spin' => sub { sorts_by(@_) }],
    ['main::finds;main::is_wanted;main::spin' => sub { finds(@_) }],
    ['main::descends;main::descends;main::descends;main::descends;main::spin' => sub { descends(3, @_) }],
    ['main::tries;main::calls;main::spin' => sub { tries(@_) }],
    ['main::leaves;Leaver::DESTROY;main::calls;main::spin' => sub { leaves(@_) }],
);
for (@ways) {
    my ($name, $way) = @$_;
    my ($used, $began) = (clock(), clock_gettime(CLOCK_MONOTONIC));
    $way->($ARGV[0]);
    printf "%s %.0f %.0f\n", $name, (clock() - $used) * 1e9, (clock_gettime(CLOCK_MONOTONIC) - $began) * 1e9;
}
