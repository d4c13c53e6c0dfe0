#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# All that needs a GPU, in one call of less than six minutes: tests, a litmus of the order of
# copies, compute-sanitizer where it is, a benchmark.
#
#	tests/gpu/run.sh BUILD-DIR [test] [bench]
#
# Writes BUILD-DIR/gpu/results.json and results.txt. Where there is no GPU it says so and
# ends with 0. Each part has a time of its own and is ended when that is over, and all of
# them when GPU_BUDGET seconds are (340): what was left out is told.
set -u

cd "$(dirname "$0")/../.." || exit 1
out=$(cd "${1:?usage: $0 BUILD-DIR [test] [bench]}" && pwd)
shift
[ $# -gt 0 ] || set -- test bench
to=$out/gpu
mkdir -p "$to"
R3RING_TEST_BUILD=$out
export R3RING_TEST_BUILD

if ! gpus=$(nvidia-smi -L 2> /dev/null) || [ -z "$gpus" ]; then
	echo "skipped: no GPU on this machine; GPU figures and tests are still to be had"
	exit 0
fi
echo "$gpus"
status=0

# ---- time ---------------------------------------------------------------

began=$(date +%s)
budget=${GPU_BUDGET:-340}

# Seconds for a part that is to have @1: not more than there are left of all.
share()
{
	left=$((began + budget - $(date +%s)))
	[ "$left" -lt "$1" ] || left=$1
	echo "$left"
}

# within PART SECONDS COMMAND...: its status; 124 when its time was over.
within()
{
	part=$1
	seconds=$(share "$2")
	shift 2
	if [ "$seconds" -lt 1 ]; then
		echo "$part: left out, the $budget s for all parts are over"
		return 124
	fi
	start=$(date +%s)
	timeout -k 1 "$seconds" "$@" > "$to/$part.log" 2>&1
	ended=$?
	echo "$part: $(($(date +%s) - start)) of $seconds s"
	[ "$ended" != 124 ] || echo "$part: ended, its time was over"
	return "$ended"
}

# ---- parts --------------------------------------------------------------

# What only the stand-in runtime can show is left out here.
tests='@(cuda_steps|cuda_placement|cuda_reference|cuda_namespaces)/*'

count()
{
	grep '^not ok' "$to/$1.tap"
	awk -v part="$1" '/# SKIP Test is disabled/ { next } /^ok .*# SKIP/ { skipped++; next }
		/^ok / { passed++ }
		/^not ok / { failed++ }
		END { printf "%s: %d passed, %d failed, %d skipped\n", part, passed, failed,
			skipped; exit failed > 0 || !passed }' "$to/$1.tap"
}

run_criterion()
{
	: > "$to/$1.tap"
	within "$1" "$2" "$out/tests/run-gpu" -j1 --timeout "$2" --filter "$3" \
		--tap="$to/$1.tap" || status=1
	count "$1" || status=1
}

run_tests()
{
	run_criterion tests 100 "$tests"
	GPU_LITMUS_SECONDS=${GPU_LITMUS_SECONDS:-$(($(share 90) / 2 - 5))}
	export GPU_LITMUS_SECONDS
	run_criterion litmus 90 'gpu_litmus/*'
	grep 'litmus:' "$to/litmus.log"
	sanitizer=$(command -v compute-sanitizer) || {
		echo "skipped: no compute-sanitizer"
		return
	}
	for tool in memcheck racecheck; do
		if within $tool 30 "$sanitizer" --tool $tool --target-processes all \
			--error-exitcode 9 "$out/tests/run-gpu" -j1 \
			--filter 'cuda_steps/every_id_of_a_decode*'; then
			echo "$tool: clean"
		else
			echo "$tool: see $to/$tool.log"
			status=1
		fi
	done
}

run_bench()
{
	R3RING_RUNTIME_DIR=$(mktemp -d)
	export R3RING_RUNTIME_DIR
	"$out/r3ringd" --runtime-dir "$R3RING_RUNTIME_DIR" 2> "$to/r3ringd.log" &
	daemon=$!
	trap 'kill -9 $daemon 2> /dev/null; rm -rf "$R3RING_RUNTIME_DIR"' EXIT
	for _ in $(seq 50); do
		"$out/r3ring" status > /dev/null 2>&1 && break
		sleep 0.1
	done
	rm -f "$to/results.json"
	within bench 90 "$out/tests/bench-gpu" "$to/results.json" "$(($(share 90) - 5))"
	ended=$?
	[ "$ended" = 0 ] || status=1
	[ "$ended" != 124 ] || printf '\n]\n' >> "$to/results.json" # what it has told is whole
	{
		echo "$gpus"
		cat "$to/bench.log"
	} > "$to/results.txt"
	cat "$to/results.txt"
	grep -i 'context\|buffer' "$to/r3ringd.log" | head -n 8
}

for part; do
	case $part in
	test) run_tests ;;
	bench) run_bench ;;
	*)
		echo "$0: no part '$part': test, bench" >&2
		exit 2
		;;
	esac
done
echo "all: $(($(date +%s) - began)) of $budget s"
exit $status
