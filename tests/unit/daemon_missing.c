/* SPDX-License-Identifier: Apache-2.0 */
/* Which failures to connect mean that there is no daemon for this user. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "channel/socket.h"
#include "monitor/daemon_status.h"

Test(daemon_status, a_daemon_that_this_user_may_not_connect_to_is_none)
{
	char dir[] = "/tmp/r3ring-closed-XXXXXX";
	struct r3ring_error err = {0};
	int code;

	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chmod(dir, 0), 0);
	if (!geteuid())
		cr_assert_eq(seteuid(65534), 0);
	code = socket_connect(dir, &err);
	if (!getuid())
		cr_assert_eq(seteuid(0), 0);
	rmdir(dir);
	cr_expect_eq(code, -EACCES, "%s", err.text);
	cr_expect(daemon_is_missing(code));
	cr_expect(strstr(err.text, "not allowed"), "%s", err.text);
}

Test(daemon_status, a_daemon_that_answers_wrongly_is_not_missing)
{
	cr_expect(daemon_is_missing(-ECONNREFUSED));
	cr_expect_not(daemon_is_missing(-EBADMSG));
	cr_expect_not(daemon_is_missing(0));
}
