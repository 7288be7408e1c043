# Starts grep and sed for each line of a file; the fix has awk read the file once.
variant=$1

for i in $(seq 250); do echo "host$i status $i ok"; done >status.txt

if [ "$variant" = after ]; then
	total=$(awk '{ sub(/^host/, "", $1); if ($0 ~ /ok$/) total += $1 } END { print total }' status.txt)
else
	total=0
	while read -r line; do
		if echo "$line" | grep -q 'ok$'; then # SLOW
			number=$(echo "$line" | sed 's/^host\([0-9]*\).*/\1/')
			total=$((total + number))
		fi
	done <status.txt
fi
echo "$total" >&2
