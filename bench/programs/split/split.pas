{ Likewise. }
program split;
uses SysUtils;
const unit_ = 2000000;
{$Q-}{$R-}
function sixty(x: LongWord): LongWord;
var i: LongInt;
begin
  for i := 1 to 6 * unit_ do x := x * 1664525 + 1013904223;
  sixty := x;
end;
function thirty(x: LongWord): LongWord;
var i: LongInt;
begin
  for i := 1 to 3 * unit_ do x := x * 1664525 + 1013904223;
  thirty := x;
end;
function ten(x: LongWord): LongWord;
var i: LongInt;
begin
  for i := 1 to unit_ do x := x * 1664525 + 1013904223;
  ten := x;
end;
var finish: QWord; x: LongWord;
begin
  finish := GetTickCount64 + QWord(StrToInt(ParamStr(1))) * 1000;
  x := 1;
  while GetTickCount64 < finish do x := ten(thirty(sixty(x)));
  if x = 7 then writeln(x);
end.
