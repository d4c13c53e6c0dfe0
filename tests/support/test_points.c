/* SPDX-License-Identifier: Apache-2.0 */
/* Killing at test points. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <r3ring/atomic.h>

#include "tests/support/test_points.h"

void r3ring_test_point(const char *label);

static struct test_points *used;

static struct test_points *map(int fd, const char *what)
{
	struct test_points *points = MAP_FAILED;

	if (fd >= 0)
		points = mmap(NULL, sizeof(*points), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (points == MAP_FAILED) {
		perror(what);
		exit(1);
	}
	return points;
}

struct test_points *test_points_make(char path[TEST_POINTS_PATH])
{
	int fd = memfd_create("test points", MFD_CLOEXEC);
	struct test_points *points;

	if (fd >= 0 && ftruncate(fd, sizeof(*points)) < 0) {
		perror("a page of test points");
		exit(1);
	}
	points = map(fd, "a page of test points");
	if (path)
		snprintf(path, TEST_POINTS_PATH, "/proc/%d/fd/%d", getpid(), fd);
	else
		close(fd);
	return points;
}

void test_points_use(struct test_points *points)
{
	used = points;
}

void test_points_arm(struct test_points *points, const char *label, uint32_t count)
{
	snprintf(points->label, sizeof(points->label), "%s", label);
	/* Pairs with the acquire in r3ring_test_point(). */
	r3ring_store_release_u32(&points->armed, count);
}

void test_points_disarm(struct test_points *points)
{
	r3ring_store_release_u32(&points->armed, 0);
}

/* A program, before its main(): no thread of it passes a point yet. */
__attribute__((constructor)) static void use_named_page(void)
{
	const char *path = getenv(TEST_POINTS_VARIABLE);
	int fd;

	if (!path || !*path)
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	used = map(fd, path);
	close(fd);
}

void r3ring_test_point(const char *label)
{
	if (!used)
		return;
	r3ring_fetch_add_u64(&used->passed, 1);
	/* Pairs with the release in test_points_arm(). */
	if (!r3ring_load_acquire_u32(&used->armed))
		return;
	if (used->label[0] && strcmp(used->label, label) != 0)
		return;
	if (r3ring_fetch_add_u32(&used->armed, UINT32_MAX) == 1)
		kill(getpid(), SIGKILL);
}
