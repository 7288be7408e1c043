# Ways to a method that works, each for the same time: calls, methods of classes, blocks that C calls, a thread, recursion. Prints what each
# way took: its name, the processor's and the clock's nanoseconds.

def clock
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

def processor
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
end

def spin(seconds)
  finish = clock + (seconds * 1e9).to_i
  sum = 0
  while clock < finish
    i = 0
    while i < 500
      sum = (sum + i * 3) & 0xffff
      i += 1
    end
  end
  sum
end

def calls(seconds)
  1 + spin(seconds)
end

class Worker
  def runs(seconds)
    1 + spin(seconds)
  end

  def self.helps(seconds)
    1 + new.runs(seconds)
  end
end

# C calls the block, for each round of which there is a native frame.
def sorts(seconds)
  [2, 1].sort_by { |number| spin(seconds / 2) + number }
end

def folds(seconds)
  { a: 1, b: 2 }.inject(0) { |sum, _| sum + calls(seconds / 2) }
end

def descends(depth, seconds)
  depth > 0 ? 1 + descends(depth - 1, seconds) : spin(seconds)
end

def waits_for(seconds)
  Thread.new { in_thread(seconds) }.join
end

def in_thread(seconds)
  spin(seconds)
end

# Most of the time is in C, below a method of Ruby.
def packs(seconds)
  numbers = Array.new(20_000) { |number| number }
  finish = clock + (seconds * 1e9).to_i
  count = 0
  count += numbers.pack('w*').size while clock < finish
  count
end

WAYS = {
  'calls;spin' => ->(seconds) { calls(seconds) },
  'helps;runs;spin' => ->(seconds) { Worker.helps(seconds) },
  'sorts;block in sorts;spin' => ->(seconds) { sorts(seconds) },
  'folds;block in folds;calls;spin' => ->(seconds) { folds(seconds) },
  'descends;descends;descends;descends;spin' => ->(seconds) { descends(3, seconds) },
  'block in waits_for;in_thread;spin' => ->(seconds) { waits_for(seconds) },
  'packs' => ->(seconds) { packs(seconds) },
}.freeze
WAYS.each do |name, way|
  used = processor
  began = clock
  way.call(ARGV[0].to_f)
  puts "#{name} #{processor - used} #{clock - began}"
end
