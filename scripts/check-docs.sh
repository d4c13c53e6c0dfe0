#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
#	scripts/check-docs.sh OUT-DIR
#
# Checks that relative links in the documents lead somewhere and that the manual
# pages are well formed, and renders the pages into OUT-DIR where mandoc is
# there. Ends with 1 if something is wrong.
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
