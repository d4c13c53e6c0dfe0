#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
#	scripts/plain-container.sh [COMMAND [ARGUMENT]...]
#
# Runs the command, `make test` when none is named, as in a container that nobody
# set up: 64 MiB of /dev/shm, and io_uring refused. Needs no root where the kernel
# lets users have user namespaces; sudo does not work inside, so what the tests
# need is installed before. Ends as the command does, with 77 where the kernel
# refuses such a container.
set -u

cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
targets=$BUILD/tests/plain-container
if [ $# = 0 ]; then
	targets="$BUILD/packages/test $targets"
	set -- make test BUILD="$BUILD"
fi
make --no-print-directory BUILD="$BUILD" $targets || exit 1
exec "$BUILD/tests/plain-container" "$@"
