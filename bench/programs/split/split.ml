(* Likewise. *)
let unit_ = 2_000_000
let[@inline never] sixty x = let r = ref x in for _ = 1 to 6 * unit_ do r := (!r * 1664525 + 1013904223) land 0xffffffff done; !r
let[@inline never] thirty x = let r = ref x in for _ = 1 to 3 * unit_ do r := (!r * 1664525 + 1013904223) land 0xffffffff done; !r + 1
let[@inline never] ten x = let r = ref x in for _ = 1 to unit_ do r := (!r * 1664525 + 1013904223) land 0xffffffff done; !r + 2
let () =
  let finish = Unix.gettimeofday () +. float_of_string Sys.argv.(1) in
  let x = ref 1 in
  while Unix.gettimeofday () < finish do x := ten (thirty (sixty !x)) done;
  if !x = 7 then print_int !x
