// SPDX-License-Identifier: Apache-2.0
//
// What the Relacy models share: one switch a mutant, and main().
//
// A model is a class with a static list of its mutants. Without an argument the
// program runs the model as the code is; with a mutant's name it runs it without
// that fence, order or check. Ends with 0 when every execution held, 1 when one
// did not; prints how many there were.
#ifndef MODEL_HPP
#define MODEL_HPP

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include <unistd.h>

#include <relacy/relacy.hpp>

static std::string mutant;

static inline bool without(const char *what)
{
	return mutant == what;
}

// The order of an access, relaxed in the mutant named.
static inline rl::memory_order order(rl::memory_order as_shipped, const char *what)
{
	return without(what) ? rl::mo_relaxed : as_shipped;
}

#define fence(as_shipped, what)                                                                    \
	do {                                                                                       \
		if (!without(what))                                                                \
			rl::atomic_thread_fence(as_shipped, $);                                    \
	} while (0)

static const rl::memory_order relaxed = rl::mo_relaxed;
static const rl::memory_order acquire = rl::mo_acquire;
static const rl::memory_order release = rl::mo_release;
static const rl::memory_order acq_rel = rl::mo_acq_rel;
static const rl::memory_order seq_cst = rl::mo_seq_cst;

// Usage of the program: [MUTANT|-] [ITERATIONS]
//
// Runs the scheduler itself: rl::simulate() would run a failed execution once more.
template <class Model> int run_model(int argc, char **argv)
{
	std::ostringstream log, state;
	rl::test_params params;
	rl::test_result_e result;

	if (argc > 1 && strcmp(argv[1], "-") != 0)
		mutant = argv[1];
	params.iteration_count = argc > 2 ? strtoull(argv[2], NULL, 10) : 200000;
	params.execution_depth_limit = 20000;
	params.output_stream = &log;
	params.progress_stream = &log;
	params.collect_history = getenv("HISTORY") != NULL;
	params.output_history = params.collect_history;
	result = rl::run_test<Model, rl::random_scheduler<Model::params::thread_count>>(params, state,
											false);
	if (params.collect_history)
		fputs(log.str().c_str(), stderr);
	printf("%llu %s\n", (unsigned long long)params.stop_iteration,
	       result == rl::test_result_success ? "held" : rl::test_result_str(result));
	fflush(stdout);
	// Relacy replaces operator delete; what it did not allocate must not get there.
	_exit(result == rl::test_result_success ? 0 : 1);
}

#define MODEL_MAIN(Model)                                                                          \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return run_model<Model>(argc, argv);                                               \
	}

#endif
