#!/usr/bin/env bash
# Runs calc.sh over a table of sums; exits 1 when one is wrong.
set -uo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")" || exit

failed=0
while read -r a op b want; do
	got=$(bash calc.sh "$a" "$op" "$b" 2>&1)
	if [[ $got == "$want" ]]; then
		echo "ok    $a $op $b = $want"
	else
		echo "FAIL  $a $op $b = $got, want $want"
		failed=1
	fi
done <<'SUMS'
1 + 2 3
2 - 5 -3
-4 x 6 -24
7 / 2 3
-8 / 2 -4
-7 / 2 -4
7 / -2 -4
1 / 0 division by zero
SUMS
exit "$failed"
