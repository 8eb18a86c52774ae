#!/usr/bin/env bash
# A calculator for whole numbers: calc.sh A OP B, where OP is one of + - x /. A quotient is rounded down.
set -euo pipefail

divide() {
	if (($2 == 0)); then
		echo "division by zero" >&2
		return 1
	fi
	# The shell rounds towards zero.
	echo $(($1 / $2))
}

case ${2-} in
+) echo $(($1 + $3)) ;;
-) echo $(($1 - $3)) ;;
x) echo $(($1 * $3)) ;;
/) divide "$1" "$3" ;;
*)
	echo "usage: calc.sh A OP B, where OP is one of + - x /" >&2
	exit 2
	;;
esac
