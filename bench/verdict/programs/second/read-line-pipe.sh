# Reads a pipe line by line in the shell; the fix lets awk do it.
seq 1 150000 >numbers.txt
if [ "$1" = after ]; then
	awk '$1 % 3 == 0 { count++ } END { print count }' numbers.txt >&2
	exit
fi
count=0
cat numbers.txt | {
	while read -r number; do # SLOW
		case $((number % 3)) in 0) count=$((count + 1)) ;; esac
	done
	echo "$count" >&2
}
