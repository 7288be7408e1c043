#!/bin/sh
# The folders of 1,000 paths (or $PATHS): by a program for each, and by the shell itself.
# Options go through to `plumb compare`.
set -eu
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cat > "$folder/program" <<END
for ((i = 0; i < ${PATHS:-1000}; i++)); do dirname "texmf-dist/fonts/\$i/file.tfm"; done | uniq -c | wc -l
END
cat > "$folder/builtin" <<END
for ((i = 0; i < ${PATHS:-1000}; i++)); do path="texmf-dist/fonts/\$i/file.tfm"; echo "\${path%/*}"; done | uniq -c | wc -l
END
"${PLUMB:-plumb}" compare "$@" "bash $folder/program" "bash $folder/builtin"
