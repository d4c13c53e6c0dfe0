/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused of an instance's options, before anybody is asked. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include <r3ring/instance.h>

static struct r3ring_instance_options options_of(const char *instance)
{
	return (struct r3ring_instance_options){
		.size = sizeof(struct r3ring_instance_options),
		.runtime_dir = "/nonexistent",
		.instance = instance,
	};
}

static void assert_refused(const struct r3ring_instance_options *options, const char *says)
{
	struct r3ring_instance *instance = NULL;
	struct r3ring_error err = {0};

	cr_assert_eq(r3ring_instance_open(&instance, options, &err), -EINVAL, "%s", err.text);
	cr_assert_not_null(strstr(err.text, says), "\"%s\" does not say \"%s\"", err.text, says);
	cr_assert_null(instance);
}

Test(instance_open, no_options_and_no_place_for_the_handle_are_refused)
{
	const struct r3ring_instance_options options = options_of("prod");
	struct r3ring_error err = {0};

	assert_refused(NULL, "options is NULL");
	cr_assert_eq(r3ring_instance_open(NULL, &options, &err), -EINVAL);
	cr_assert_not_null(strstr(err.text, "instance is NULL"), "%s", err.text);
}

Test(instance_open, starts_that_are_counted_and_not_there_are_refused)
{
	struct r3ring_instance_options options = options_of("prod");

	options.start_count = 1;
	assert_refused(&options, "starts is NULL");
}

Test(instance_open, a_start_of_no_channel_is_refused)
{
	const struct r3ring_instance_start starts[] = {{.channel = "prod/0"}, {.generation = 1}};
	struct r3ring_instance_options options = options_of("prod");

	options.starts = starts;
	options.start_count = 2;
	assert_refused(&options, "starts[1] names no channel");
}
