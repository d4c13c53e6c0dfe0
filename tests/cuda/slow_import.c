/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer whose import takes long: everybody else is served meanwhile. */
#include <criterion/criterion.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "monitor/daemon_status.h"
#include "tests/cuda/gpu_rig.h"
#include "tests/support/channel_status.h"
#include "tests/support/held_call.h"

#define ROWS 8u

static struct gpu_rig rig;
static struct held_call import; /* opening the exporter's memory, in the stand-in runtime */

static void start(void)
{
	char why[128];

	if (!held_call_possible(why, sizeof(why)))
		cr_skip_test("%s", why);
	import = (struct held_call){.number = SYS_openat,
				    .argument = 2,
				    .from = O_RDWR | O_CLOEXEC,
				    .to = O_RDWR | O_CLOEXEC};
	held_call_make(&import);
	rig.daemon.prepare = held_call_prepare;
	rig.daemon.prepare_ctx = &import;
	gpu_rig_start(&rig, &gpu_small, ROWS, NULL);
	gpu_rig_make_engine(&rig);
}

TestSuite(cuda_slow_import, .init = start, .timeout = 100);

static void *open_producer(void *ctx)
{
	gpu_rig_open_producer(&rig, ctx);
	return NULL;
}

Test(cuda_slow_import, others_are_served_while_a_buffer_is_imported)
{
	struct r3ring_error err = {0}, why = {0};
	pthread_t opener;
	json_t *status;

	setenv("R3RING_RUNTIME_DIR", rig.daemon.dir, 1);
	cr_assert_eq(pthread_create(&opener, NULL, open_producer, &why), 0);
	cr_assert(held_call_await(&import));
	/* The answer is the daemon's, which knows no such channel yet. */
	cr_expect_eq(daemon_status_get(&status, &err), 0, "%s", err.text);
	cr_expect_eq(json_array_size(json_object_get(status, "channels")), 0);
	json_decref(status);
	held_call_release(&import);
	cr_assert_eq(pthread_join(opener, NULL), 0);
	cr_assert_not_null(rig.producer, "%s", why.text);
	cr_expect_eq(channel_readers(rig.daemon.dir, rig.channel), 0);
	gpu_rig_close(&rig);
	held_call_close(&import);
}
