# Likewise.
set unit 20000
proc sixty {x} { global unit; for {set i 0} {$i < 6 * $unit} {incr i} { set x [expr {($x * 1664525 + 1013904223) & 0xffffffff}] }; return $x }
proc thirty {x} { global unit; for {set i 0} {$i < 3 * $unit} {incr i} { set x [expr {($x * 1664525 + 1013904223) & 0xffffffff}] }; return $x }
proc ten {x} { global unit; for {set i 0} {$i < $unit} {incr i} { set x [expr {($x * 1664525 + 1013904223) & 0xffffffff}] }; return $x }
set finish [expr {[clock seconds] + [lindex $argv 0]}]
set x 1
while {[clock seconds] < $finish} { set x [ten [thirty [sixty $x]]] }
