# Starts tr, cut and basename for each name; the fix uses what the shell can do itself.
variant=$1
count=0

label_of() {
	if [ "$variant" = after ]; then
		label=${1##*/}
		label=${label%%.*}
		label=${label^^}
	else
		label=$(basename "$1" | cut -d. -f1 | tr a-z A-Z) # SLOW
	fi
}

for i in $(seq 180); do
	label_of "/srv/images/photo$i.original.jpeg"
	count=$((count + ${#label}))
done
echo "$count" >&2
