# Prints its own stack as Ruby knows it, innermost first: function, file and line, and then waits in a C function that is called in the
# same method. On the way are methods and a block that C calls.

class Waiter
  # Methods of Array that are written in C, which Ruby lists too.
  OF_C = /\A(Array#|Enumerable#)?(each|sort_by)\z/

  def sits(seconds)
    calls = caller_locations(0).reject { |call| call.label =~ OF_C }
    lines = calls.map(&:lineno)
    # Where it will sleep.
    lines[0] = __LINE__ + 4
    calls.zip(lines) { |call, line| puts "#{call.label}\t#{call.path}\t#{line}" }
    puts 'hangs'
    $stdout.flush
    sleep(seconds)
  end

  def waits(all)
    all.sort_by { |seconds| sits(seconds) }
  end
end

Waiter.new.waits([3600, 3601])
