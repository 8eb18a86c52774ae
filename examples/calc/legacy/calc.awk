# The calculator before calc.sh. Nothing calls it any more.
{ if ($2 == "+") print $1 + $3; else if ($2 == "-") print $1 - $3 }
