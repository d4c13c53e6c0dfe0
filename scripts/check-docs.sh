#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
#	scripts/check-docs.sh OUT-DIR
#
# Checks that relative links in the documents lead somewhere, that FAILURES.md
# knows its tests, and that the manual pages are well formed; renders the pages
# into OUT-DIR where mandoc is there. Ends with 1 if something is wrong.
set -u

cd "$(dirname "$0")/.." || exit 1
out=${1:?usage: $0 OUT-DIR}
broken=$(mktemp) || exit 1
trap 'rm -f "$broken"' EXIT

for document in *.md docs/*.md; do
	grep -noE '\]\([^)]+\)' "$document" | sed -E 's/\]\(//; s/\)$//' |
		while IFS=: read -r line target; do
			case $target in
			http://* | https://* | mailto:* | '#'*) continue ;;
			esac
			[ -e "$(dirname "$document")/${target%%#*}" ] ||
				echo "$document:$line: leads nowhere: $target"
		done
done > "$broken"

# Numbers in tests' names are rows of FAILURES.md, and it says which rows have tests.
grep -rhoE 'failures?_[0-9]+(_and_[0-9]+)*' tests | grep -oE '[0-9]+' | sed 's/^0*//' | sort -nu \
	> "$broken.tested"
awk -F'|' '/^\| *[0-9]+ \|/ && $6 ~ /yes/ { print $2 + 0 }' docs/FAILURES.md | sort -nu |
	diff "$broken.tested" - | sed -nE \
	's/^< (.*)/docs\/FAILURES.md: row \1 has tests and does not say so/p
	 s/^> (.*)/docs\/FAILURES.md: row \1 has no test/p' >> "$broken"
rm -f "$broken.tested"

# STYLE is left out: it is mandoc's taste.
if command -v mandoc > /dev/null; then
	mkdir -p "$out"
	for page in docs/man/*.[1-8]; do
		[ -e "$page" ] || continue
		mandoc -T lint -W warning "$page" >> "$broken"
		mandoc -T html "$page" > "$out/$(basename "$page").html"
	done
	echo "manual pages: $out"
else
	echo "no mandoc here: manual pages neither checked nor rendered" >&2
fi
cat "$broken"
[ ! -s "$broken" ]
