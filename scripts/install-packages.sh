#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs what one group of make targets needs and this machine lacks.
#
#	scripts/install-packages.sh build|test|model|bench|peers|lint|aarch64
#
# First looks, with the compiler, which are missing; with none missing that is
# all. Installs with apt-get (through sudo where not root); where there is no
# apt-get it lists what is missing and ends with 1. Asks nothing.
set -u

CC=${CC:-gcc}
CXX=${CXX:-g++}
group=${1:?usage: $0 build|test|model|bench|lint|aarch64}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# Whether a program that includes $1 compiles and links with the flags behind it.
have_library()
{
	header=$1
	shift
	printf '#include <stddef.h>\n#include <%s>\nint main(void) { return 0; }\n' "$header" \
		> "$scratch/probe.c"
	$CC -o "$scratch/probe" "$scratch/probe.c" "$@" > /dev/null 2>&1
}

have_program()
{
	command -v "$1" > /dev/null 2>&1
}

have_path()
{
	[ -e "$1" ]
}

have_cxx()
{
	printf '#include <cstdint>\nint main() { return 0; }\n' > "$scratch/probe.cc"
	$CXX -o "$scratch/probe" "$scratch/probe.cc" > /dev/null 2>&1
}

have_relacy()
{
	printf '#include <relacy/relacy.hpp>\n' > "$scratch/probe.cc"
	$CXX -w -fsyntax-only "$scratch/probe.cc" > /dev/null 2>&1
}

# need DEBIAN-NAME WHAT-IT-IS PROBE...: runs the probe, notes what is missing.
missing=
need()
{
	package=$1
	what=$2
	shift 2
	"$@" && return
	missing="$missing $package"
	printf '  %-18s %s\n' "$package" "$what" >> "$scratch/list"
}

needed_for_build()
{
	need libc6-dev 'C library headers' have_library stdio.h
	need liburing-dev 'liburing 2.1 or later' have_library liburing.h -luring
	need libjansson-dev 'jansson (JSON)' have_library jansson.h -ljansson
	need libxxhash-dev 'xxHash headers' have_library xxhash.h
	need uthash-dev 'uthash headers' have_library uthash.h
	need libzstd-dev 'zstd (archives)' have_library zstd.h -lzstd
	need libsqlite3-dev 'SQLite (index of archives)' have_library sqlite3.h -lsqlite3
	need libmd-dev 'libmd (SHA-256 of recordings)' have_library sha2.h -lmd
	need libpng-dev 'libpng (r3ring report)' have_library png.h -lpng
	need libmicrohttpd-dev 'GNU libmicrohttpd (r3ring serve)' have_library microhttpd.h -lmicrohttpd
	need libncurses-dev 'ncurses (r3ring top)' have_library ncurses.h -lncursesw -ltinfo
}

# Whether this system's package manager has it at all: what only some tests want, which say
# so when they are skipped without it.
can_install()
{
	have_program apt-cache && apt-cache show "$1" > /dev/null 2>&1
}

needed_for_model()
{
	need spin 'Spin (tests: models)' have_program spin
	need relacy-dev 'Relacy (tests: models)' have_relacy
	need g++ 'a C++17 compiler (tests)' have_cxx
}

needed_for_test()
{
	need libcriterion-dev 'Criterion 2.4 (tests)' \
		have_library criterion/criterion.h -lcriterion
	need pkg-config 'pkg-config or pkgconf (tests)' have_program pkg-config
	need binutils 'nm and readelf (tests)' have_program readelf
	have_program chromedriver || ! can_install chromium-driver ||
		need 'chromium chromium-driver' 'a browser (tests: the page)' have_program chromedriver
	have_program promtool || ! can_install prometheus ||
		need prometheus 'Prometheus and promtool (tests: metrics)' have_program promtool
	have_program curl || ! can_install curl ||
		need curl 'curl (tests: the service)' have_program curl
	have_program tmux || ! can_install tmux ||
		need tmux 'tmux (tests: terminals)' have_program tmux
	needed_for_model
}

needed_for_aarch64()
{
	need gcc-aarch64-linux-gnu 'a compiler for arm64' have_program aarch64-linux-gnu-gcc
	need libc6-dev-arm64-cross 'its C library' \
		have_path /usr/aarch64-linux-gnu/include/stdio.h
	need qemu-user 'qemu-user (runs arm64 programs)' have_program qemu-aarch64
}

# Where a .pc file says where the headers are.
have_described()
{
	have_program pkg-config && pkg-config --exists "$1"
}

have_boost()
{
	printf '#include <boost/lockfree/spsc_queue.hpp>\n' > "$scratch/probe.cc"
	$CXX -w -fsyntax-only "$scratch/probe.cc" > /dev/null 2>&1
}

have_iceoryx()
{
	for probe in /usr/include/iceoryx/v*/iceoryx_binding_c/publisher.h; do
		[ -e "$probe" ] && return
	done
	return 1
}

have_matplotlib()
{
	/usr/bin/python3 -c 'import matplotlib' > /dev/null 2>&1
}

needed_for_peers()
{
	need g++ 'a C++17 compiler (peers)' have_cxx
	need pkg-config 'pkg-config or pkgconf (peers)' have_program pkg-config
	need libdpdk-dev 'DPDK (peers)' have_described libdpdk
	need libck-dev 'Concurrency Kit (peers)' have_described ck
	need libboost-dev 'Boost headers (peers)' have_boost
	need libiceoryx-binding-c-dev 'iceoryx, for C (peers)' have_iceoryx
	need iceoryx "iceoryx's daemon (peers)" have_program iox-roudi
	need libzmq3-dev 'ZeroMQ (peers)' have_library zmq.h -lzmq
	need redis-server 'Redis (peers)' have_program redis-server
	need libhiredis-dev 'a client for Redis (peers)' have_library hiredis/hiredis.h -lhiredis
	need python3-matplotlib 'matplotlib (peers: the plot)' have_matplotlib
}

needed_for_lint()
{
	need clang-format 'clang-format 14 or later' have_program clang-format
	need clang 'clang (a second compiler, fuzzing)' have_program clang
	need clang-tidy 'clang-tidy' have_program clang-tidy
}

if ! have_program "${CC%% *}"; then
	echo "$0: no compiler '$CC': install one (Debian: gcc), or name yours: make CC=..." >&2
	exit 1
fi
case $group in
build) needed_for_build ;;
test) needed_for_test ;;
model) needed_for_model ;;
bench) need valgrind 'valgrind (counts instructions)' have_program valgrind ;;
peers) needed_for_peers ;;
lint) needed_for_lint ;;
aarch64) needed_for_aarch64 ;;
*)
	echo "$0: no group '$group': build, test, model, bench, peers, lint or aarch64" >&2
	exit 2
	;;
esac
[ -n "$missing" ] || exit 0

# Who has to do it by hand should have to do it once.
also_for_tests()
{
	[ "$group" != build ] || needed_for_test
}

if ! have_program apt-get; then
	also_for_tests
	echo "$0: these are missing and there is no apt-get; names are Debian's:" >&2
	cat "$scratch/list" >&2
	echo "Install them with this system's package manager, then run make again" >&2
	echo "(make PACKAGES=no skips this check)." >&2
	exit 1
fi

as_root=
if [ "$(id -u)" != 0 ]; then
	if ! have_program sudo; then
		also_for_tests
		echo "$0: missing, and neither root nor sudo to install them:" >&2
		cat "$scratch/list" >&2
		echo "Run as root: apt-get install$missing" >&2
		exit 1
	fi
	as_root='sudo -n'
	[ -t 0 ] && as_root=sudo
fi

apt_get()
{
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@"
}

# Lists that are absent or old are the usual reason for a failure: fetch, try again.
echo "  APT    $missing"
if ! apt_get install -y --no-install-recommends $missing > "$scratch/log" 2>&1 < /dev/null; then
	apt_get update > "$scratch/log" 2>&1 < /dev/null &&
		apt_get install -y --no-install-recommends $missing >> "$scratch/log" 2>&1 < /dev/null
	if [ $? != 0 ]; then
		cat "$scratch/log" >&2
		echo "$0: apt-get could not install:$missing" >&2
		exit 1
	fi
fi
