#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
#	serve/page/join.sh > page.html
#
# Puts style and scripts into the page, in this order, so that it is one file.
set -eu

cd "$(dirname "$0")"
scripts='dom counts color heatmap axis stream timeline causes lately verdicts losses tables routes lookup main'

while IFS= read -r line; do
	case $line in
	*'/*page.css*/'*)
		echo '<style>'
		cat page.css
		echo '</style>'
		;;
	*'/*page.js*/'*)
		echo '<script type="module">'
		for script in $scripts; do
			cat "$script.js"
		done
		echo '</script>'
		;;
	*) printf '%s\n' "$line" ;;
	esac
done < page.html
