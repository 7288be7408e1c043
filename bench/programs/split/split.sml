(* Likewise. *)
fun spin (0, x : Word32.word) = x | spin (n, x) = spin (n - 1, x * 0w1664525 + 0w1013904223)
fun sixty x = spin (12000000, x) + 0w1
fun thirty x = spin (6000000, x) + 0w2
fun ten x = spin (2000000, x) + 0w3
fun loop (finish, x) = if Time.now () > finish then x else loop (finish, ten (thirty (sixty x)))
fun main () = (loop (Time.+ (Time.now (), Time.fromSeconds 3), 0w1); ())
