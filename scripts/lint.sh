#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
#	scripts/lint.sh [JOBS]
#
# House rules, and clang-tidy with compile_commands.json. Ends with 1 if either
# found something.
set -u

cd "$(dirname "$0")/.." || exit 1
jobs=${1:-2}
status=0

scripts/house-rules.sh || status=1

# uthash's macros hide from the analyser what they initialise and what they free.
hashing=$(git grep -lE '#include (<uthash\.h>|"(record/live|archive/index_[a-z]+|consumer/(assembler/[a-z]+|load/load|predict/history|reserve/book))\.h")' -- '*.c')

tidy()
{
	xargs -r -P "$jobs" -n 4 clang-tidy --quiet -p . \
		--extra-arg=-includescripts/analyser.h "$@" 2> /dev/null
}

checked=$(git ls-files '*.c' | grep -vE '^(tests/|ring/error\.c)')
printf '%s\n' $checked | grep -vxF "$hashing" | tidy || status=1
printf '%s\n' $checked | grep -xF "$hashing" |
	tidy --checks="$(printf -- '-clang-analyzer-%s,' unix.Malloc core.NullDereference \
		core.uninitialized.Assign)" || status=1

exit $status
