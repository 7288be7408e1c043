%% Likewise.
-module(split).
-export([main/1]).
spin(0, X) -> X;
spin(N, X) -> spin(N - 1, (X * 1664525 + 1013904223) band 16#ffffffff).
sixty(X) -> spin(6000000, X) + 1.
thirty(X) -> spin(3000000, X) + 1.
ten(X) -> spin(1000000, X) + 1.
loop(End, X) -> case erlang:monotonic_time(second) < End of true -> loop(End, ten(thirty(sixty(X)))); false -> X end.
main([Seconds]) -> loop(erlang:monotonic_time(second) + list_to_integer(Seconds), 1), halt().
