# Likewise.
UNIT = 40000
def sixty(x) = (6 * UNIT).times { x = (x * 1664525 + 1013904223) & 0xffffffff }.then { x }
def thirty(x) = (3 * UNIT).times { x = (x * 1664525 + 1013904223) & 0xffffffff }.then { x }
def ten(x) = UNIT.times { x = (x * 1664525 + 1013904223) & 0xffffffff }.then { x }
finish = Time.now + ARGV[0].to_f
x = 1
x = ten(thirty(sixty(x))) while Time.now < finish
