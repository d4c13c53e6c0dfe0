#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
#	scripts/lint.sh [JOBS]
#
# House rules, cppcheck, and clang-tidy with compile_commands.json. Ends with 1
# if any of them found something.
set -u

cd "$(dirname "$0")/.." || exit 1
jobs=${1:-2}
status=0

scripts/house-rules.sh || status=1

cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 -j "$jobs" \
	--enable=warning,performance,portability --suppress=missingInclude \
	--suppressions-list=.cppcheck -D__x86_64__ -D__linux__ -Iinclude -I. \
	$(git ls-files '*.c' | grep -v '^tests/install/') || status=1

git ls-files '*.c' | grep -v '^tests/' |
	xargs -P "$jobs" -n 4 clang-tidy --quiet -p . 2> /dev/null || status=1

exit $status
