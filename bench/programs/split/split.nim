# Likewise.
import os, strutils, times, std/monotimes
const unit = 2_000_000
proc sixty(x: uint32): uint32 {.noinline.} =
  result = x
  for i in 1 .. 6 * unit: result = result * 1664525'u32 + 1013904223'u32
proc thirty(x: uint32): uint32 {.noinline.} =
  result = x + 1
  for i in 1 .. 3 * unit: result = result * 1664525'u32 + 1013904223'u32
proc ten(x: uint32): uint32 {.noinline.} =
  result = x + 2
  for i in 1 .. unit: result = result * 1664525'u32 + 1013904223'u32
let finish = getMonoTime() + initDuration(seconds = parseInt(paramStr(1)))
var x = 1'u32
while getMonoTime() < finish: x = ten(thirty(sixty(x)))
if x == 7: echo x
