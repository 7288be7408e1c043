#!/bin/bash
# runs all cases here, one after the other (PLUMB=another binary; names of cases as arguments), and prints a table
cd "$(dirname "$0")" || exit 1
export PLUMB=${PLUMB:-plumb}
log=${LOG:-$(mktemp -d)}; f=0; table=
for c in ${*:-$(for d in */run.sh; do dirname "$d"; done)}; do
  t0=$(date +%s); bash "$c/run.sh" >"$log/$c.out" 2>&1; rc=$?; t1=$(date +%s)
  ok=$(grep -c '^  ok ' "$log/$c.out"); b=$(grep -c '^  BAD ' "$log/$c.out")
  if grep -q "^SKIP " "$log/$c.out"; then s="SKIP"; elif [ $rc = 0 ]; then s=PASS; else s=FAIL; f=1; fi
  cat "$log/$c.out"
  table+=$(printf '%-24s %4d %4d %5ds  %s' "$c" "$ok" "$b" $((t1-t0)) "$s")$'\n'
done
printf '\n%-24s %4s %4s %6s  %s\n%s' case ok bad time result "$table"
exit $f
