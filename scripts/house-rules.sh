#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The project's own rules, as far as grep and awk can see them (CONTRIBUTING.md
# has their reasons). Names each breach with file and line; ends with 1 if any.
set -u

cd "$(dirname "$0")/.." || exit 1
breaches=$(mktemp) || exit 1
trap 'rm -f "$breaches"' EXIT
libraries='ring record channel kernels device producer consumer monitor'

files()
{
	git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
		[ -f "$file" ] && echo "$file"
	done
}
c_files=$(files '*.c' '*.h' '*.cu' '*.cc')
scripts=$(files '*.sh' '.ci/run' 'tests/run' 'tests/*/run' 'tests/model/row')

# forbid RULE PATTERN FILE...: no line of the files may match.
forbid()
{
	rule=$1
	pattern=$2
	shift 2
	[ $# = 0 ] || grep -nE -e "$pattern" -- "$@" /dev/null | grep -vF '/* stands for work */' |
		awk -v rule="$rule" '{ print $0 "   <- " rule }' >> "$breaches"
}

for file in $c_files Makefile; do
	head -n 1 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
		echo "$file:1: no SPDX line" >> "$breaches"
done
for file in $scripts; do
	sed -n 2p "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
		echo "$file:2: no SPDX line" >> "$breaches"
done

forbid 'volatile is not an atomic: include/r3ring/atomic.h' '\bvolatile\b' $c_files
forbid 'atomics only through include/r3ring/atomic.h' '__atomic_|__sync_|<stdatomic\.h>|\b_Atomic\b' \
	$(echo "$c_files" | grep -v '^include/r3ring/atomic.h$')
forbid 'open ends belong into an issue' '\b(TO''DO|FIX''ME|XX''X|HA''CK)\b' \
	$c_files $scripts Makefile
forbid 'tests wait for events, they do not sleep' '\b(u?sleep|(clock_)?nanosleep)[[:space:]]*\(' \
	$(files 'tests/*.c' 'tests/*.h' | grep -v '^tests/bench/')
forbid 'space at the end of a line' '[[:space:]]$' $c_files $scripts Makefile $(files '*.md')
forbid 'libraries neither print nor exit' \
	'(^|[^_[:alnum:]])(v?f?printf|puts|putchar|perror|exit|abort|signal|sigaction)[[:space:]]*\(' \
	$(for directory in $libraries; do files "$directory/*.c" "$directory/*.h"; done |
		grep -v '^producer/reference/')
# What was built is nobody's source.
git ls-files -- 'build*/*' '*.o' '*.a' '*.so' | sed 's/$/: built, not written/' >> "$breaches"
for file in $c_files; do
	case $(basename "$file") in
	util*.[ch] | misc*.[ch] | common.[ch] | helper*.[ch])
		echo "$file: say in its name what it is about" >> "$breaches"
		;;
	esac
done

# Data flows one way: what a directory may include besides the public headers.
may_include()
{
	directory=$1
	allowed=$2
	forbid "$directory may include of ours: ${allowed:-nothing but include/ and itself}" \
		"^#include \"(ring|record|channel|kernels|device|producer|consumer|capture_daemon|archive|monitor|serve|tools)/" \
		$(files "$directory/*.c" "$directory/*.h")
	[ -z "$allowed" ] && allowed=$directory || allowed="$directory|$allowed"
	grep -vE "^$directory/.*#include \"($allowed)/" "$breaches" > "$breaches.kept"
	mv "$breaches.kept" "$breaches"
}
may_include ring ''
may_include record ''
may_include channel ''
may_include kernels 'channel'
may_include device 'channel|kernels'
may_include producer 'ring|record|channel|kernels|device'
may_include consumer 'ring|record|channel'
may_include archive 'record|channel|consumer'
may_include monitor 'channel|consumer'
may_include serve 'channel|consumer|monitor'
may_include report 'record|channel|consumer|archive|monitor|serve'
may_include capture_daemon 'ring|record|channel|kernels|device'
forbid 'the ring knows nothing of MoE' '#include <r3ring/(record|proto|producer|reader|bind)\.h>' \
	$(files 'ring/*.c' 'ring/*.h')

# A function body is what stands between { and } in the first column.
awk '
	FNR == 1 { start = 0 }
	/^\{/ { start = FNR }
	/^\}/ { if (start && FNR - start - 1 > 70)
		printf "%s:%d: a function of %d lines (at most 70)\n", FILENAME, start, FNR - start - 1
		start = 0 }' $c_files >> "$breaches"

for file in $c_files; do
	lines=$(wc -l < "$file")
	[ "$lines" -le 500 ] || echo "note: $file has $lines lines; is it one concern?"
done

cat "$breaches"
[ ! -s "$breaches" ]
