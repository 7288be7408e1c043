\ Likewise.
: spin ( x n -- y ) 0 do 16807 * 2147483647 mod loop ;
: sixty 3000000 spin ; : thirty 1500000 spin ; : ten 500000 spin ;
: go utime drop 3000000 + 1 begin utime drop 2 pick < while sixty thirty ten repeat 2drop ;
go bye
