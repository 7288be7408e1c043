# Starts expr for each addition; the fix has the shell add.
variant=$1
total=0

add() {
	if [ "$variant" = after ]; then
		total=$((total + $1))
	else
		total=$(expr $total + "$1") # SLOW
	fi
}

for i in $(seq 700); do
	add "$i"
done
echo "$total" >&2
