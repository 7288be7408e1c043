-- Likewise.
local unit = 100000
local function sixty(x) for i = 1, 6 * unit do x = (x * 16807) % 2147483647 end return x end
local function thirty(x) for i = 1, 3 * unit do x = (x * 16807) % 2147483647 end return x end
local function ten(x) for i = 1, unit do x = (x * 16807) % 2147483647 end return x end
local finish, x = os.time() + tonumber(arg[1]), 1
while os.time() < finish do x = ten(thirty(sixty(x))) end
