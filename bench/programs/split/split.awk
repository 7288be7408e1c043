# Likewise.
function sixty(x, i) { for (i = 0; i < 240000; i++) x = (x * 16807) % 2147483647; return x }
function thirty(x, i) { for (i = 0; i < 120000; i++) x = (x * 16807) % 2147483647; return x }
function ten(x, i) { for (i = 0; i < 40000; i++) x = (x * 16807) % 2147483647; return x }
BEGIN { srand(); begin = srand(); for (x = 1; now - begin < 3;) { x = ten(thirty(sixty(x))); srand(); now = srand() } }
