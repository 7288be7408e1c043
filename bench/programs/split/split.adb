--  Likewise.
with Ada.Calendar; use Ada.Calendar;
with Ada.Command_Line;
with Interfaces; use Interfaces;

procedure Split is
   Unit : constant := 2_000_000;
   X    : Unsigned_32 := 1;
   procedure Sixty with No_Inline;
   procedure Thirty with No_Inline;
   procedure Ten with No_Inline;
   procedure Sixty is
   begin
      for I in 1 .. 6 * Unit loop X := X * 1664525 + 1013904223; end loop;
   end Sixty;
   procedure Thirty is
   begin
      for I in 1 .. 3 * Unit loop X := X * 1664525 + 1013904223; end loop;
   end Thirty;
   procedure Ten is
   begin
      for I in 1 .. Unit loop X := X * 1664525 + 1013904223; end loop;
   end Ten;
   Finish : constant Time := Clock + Duration'Value (Ada.Command_Line.Argument (1));
begin
   while Clock < Finish loop
      Sixty; Thirty; Ten;
   end loop;
end Split;
