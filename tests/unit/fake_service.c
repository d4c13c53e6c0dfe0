/* SPDX-License-Identifier: Apache-2.0 */
/* The fake service in memory that processes share, as benchmarks have it. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fake_service.h"

static struct fake_service *share_service(void)
{
	struct fake_service *service = mmap(NULL, sizeof(*service), PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(service, MAP_FAILED);
	cr_assert_eq(fake_service_start(service), 0);
	return service;
}

/* Another process takes a producer in, and has ended. */
static void take_in_elsewhere(struct fake_service *service)
{
	struct r3ring_producer_options options = fake_service_options(service);
	struct r3ring_producer *producer;
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (!pid) {
		fake_service_expect(service);
		_exit(fake_service_await(service) ? 1 : 0);
	}
	cr_assert_eq(r3ring_producer_open(&producer, &options, NULL), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	r3ring_producer_close(producer);
}

/* A page where @address lies is ours: made, or there already. */
static void occupy(void *address, size_t page)
{
	mmap(address, page, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static bool is_mapped(void *address, size_t page)
{
	unsigned char resident;

	return mincore(address, page, &resident) == 0;
}

Test(fake_service, what_another_process_took_in_is_not_let_go_here)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct fake_service *service = share_service();
	uint8_t *buffer;
	int number;

	take_in_elsewhere(service);
	buffer = service->buffer;
	number = fcntl(service->listener, F_DUPFD_CLOEXEC, service->peer);
	occupy(buffer, page);
	cr_assert(is_mapped(buffer, page));
	cr_assert_eq(number, service->peer);
	fake_service_stop(service);
	cr_expect(is_mapped(buffer, page), "it unmapped what was not its own");
	cr_expect_neq(fcntl(number, F_GETFD), -1, "it closed what was not its own");
}
