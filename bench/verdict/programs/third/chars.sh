# Counts vowels of a long text by ${text:i:1}, which counts from its start each time; the fix reads it by lines.
export LC_ALL=C.UTF-8
text=
for i in {1..300}; do text+="the quick brown fox jümps over the lazy dog $i "; done

count() {
	local all=$1 vowels=0 i
	if [ "$2" = after ]; then
		while IFS= read -r -n 1 letter; do
			case $letter in [aeiou]) vowels=$((vowels + 1)) ;; esac
		done <<<"$all"
	else
		for ((i = 0; i < ${#all}; i++)); do
			case ${all:i:1} in [aeiou]) vowels=$((vowels + 1)) ;; esac # SLOW
		done
	fi
	echo "$vowels" >&2
}

count "$text" "$1"
