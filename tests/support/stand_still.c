/* SPDX-License-Identifier: Apache-2.0 */
/* Children that are stopped for sure. */
#include <signal.h>
#include <sys/wait.h>

#include "tests/support/stand_still.h"

void stand_still(pid_t child)
{
	int status;

	kill(child, SIGSTOP);
	waitpid(child, &status, WUNTRACED);
}
