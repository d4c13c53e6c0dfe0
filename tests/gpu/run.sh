#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# All that needs a GPU, in one call of some minutes: tests, compute-sanitizer where it is,
# benchmark.
#
#	tests/gpu/run.sh BUILD-DIR [test] [bench]
#
# Writes BUILD-DIR/gpu/results.json and results.txt. Where there is no GPU it says so and
# ends with 0.
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

# What only the stand-in runtime can show is left out here.
tests='@(cuda_steps|cuda_placement|gpu_litmus)/*'

run_tests()
{
	timeout 240 "$out/tests/run-gpu" -j1 --timeout 300 --filter "$tests" \
		--tap="$to/tests.tap" > "$to/tests.log" 2>&1 || status=1
	grep '^not ok' "$to/tests.tap"
	awk '/^ok .*# SKIP/ { skipped++; next } /^ok / { passed++ } /^not ok / { failed++ }
		END { printf "GPU tests: %d passed, %d failed, %d skipped\n", passed, failed,
			skipped; exit failed > 0 || !passed }' "$to/tests.tap" || status=1
	sanitizer=$(command -v compute-sanitizer) || {
		echo "skipped: no compute-sanitizer"
		return
	}
	for tool in memcheck racecheck; do
		if timeout 100 "$sanitizer" --tool $tool --target-processes all --error-exitcode 9 \
			"$out/tests/run-gpu" -j1 --filter 'cuda_steps/every_id_of_a_decode*' \
			> "$to/$tool.log" 2>&1; then
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
	trap 'kill $daemon 2> /dev/null; rm -rf "$R3RING_RUNTIME_DIR"' EXIT
	for _ in $(seq 100); do
		"$out/r3ring" status > /dev/null 2>&1 && break
		sleep 0.1
	done
	{
		echo "$gpus"
		timeout 240 "$out/tests/bench-gpu" "$to/results.json"
	} > "$to/results.txt" 2> "$to/bench.err" || status=1
	cat "$to/results.txt" "$to/bench.err"
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
exit $status
