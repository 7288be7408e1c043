# Likewise.
sixty() { for ((i = 0; i < 60000; i++)); do ((x = (x * 16807) % 2147483647)); done; }
thirty() { for ((i = 0; i < 30000; i++)); do ((x = (x * 16807) % 2147483647)); done; }
ten() { for ((i = 0; i < 10000; i++)); do ((x = (x * 16807) % 2147483647)); done; }
x=1 end=$((SECONDS + $1))
while ((SECONDS < end)); do sixty; thirty; ten; done
