#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
#	scripts/plain-container.sh [COMMAND [ARGUMENT]...]
#
# Runs the command, `make test` when none is named, as in a container that nobody
# set up: 64 MiB of /dev/shm, and io_uring refused. Needs no root where the kernel
# lets users have user namespaces; sudo does not work inside. Ends as the command
# does, with 77 where the kernel refuses such a container.
set -u

cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
make --no-print-directory BUILD="$BUILD" "$BUILD/tests/plain-container" || exit 1
[ $# -gt 0 ] || set -- make test BUILD="$BUILD"
exec "$BUILD/tests/plain-container" "$@"
