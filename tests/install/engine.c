/* SPDX-License-Identifier: Apache-2.0 */
/* An engine outside of the project, as far as it comes without a daemon: all of the producer's
 * library is linked. */
#include <errno.h>
#include <stdio.h>

#include <r3ring/producer.h>

int main(void)
{
	struct r3ring_producer *producer = NULL;
	struct r3ring_error err = {0};
	int rc = r3ring_producer_open(&producer, NULL, &err);

	if (rc == -EINVAL)
		return 0;
	fprintf(stderr, "producer_open: %d %s\n", rc, err.text);
	return 1;
}
