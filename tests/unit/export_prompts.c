/* SPDX-License-Identifier: Apache-2.0 */
/* How long a prompt was is not told of a request whose first attempt nobody saw begin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/export_fixture.h"

TestSuite(export_prompts, .init = trial_open, .fini = trial_close);

/* Its second attempt is all that there is: of the five tokens that it begins with some were sampled. */
static void export_second_attempt(const char *format)
{
	struct r3ring_span span = trial_span(1, 0, 5);

	span.attempt = 1;
	trial.options.missing = EXPORT_FILL_ARANGE;
	trial_begin(format);
	feed_begin(&trial.feed, 1, "a", 5, 1);
	feed_whole(&trial.feed, 1, 5, &span, 1);
	feed_end(&trial.feed, 1, R3RING_END_FINISHED, 1, 6);
	trial_finish();
}

/* Whether the output has these bytes. */
static bool output_has(const char *bytes, size_t count)
{
	FILE *file = fopen(trial.out, "rb");
	static char content[65536];
	size_t read;

	cr_assert_not_null(file);
	read = fread(content, 1, sizeof(content), file);
	fclose(file);
	return memmem(content, read, bytes, count) != NULL;
}

Test(export_prompts, safetensors_says_minus_one)
{
	struct safetensors_tensor tensor;
	int64_t value;

	export_second_attempt("safetensors");
	trial_read();
	tensor = safetensors_tensor(&trial.file, "prompt_tokens");
	memcpy(&value, tensor.data, sizeof(value));
	cr_assert_eq(value, -1);
}

Test(export_prompts, a_line_of_json_says_null)
{
	const char null[] = "\"prompt_tokens\":null";

	export_second_attempt("slime");
	cr_assert(output_has(null, sizeof(null) - 1));
}

Test(export_prompts, msgpack_says_nil)
{
	const char nil[] = "\xADprompt_tokens\xC0";

	trial.feed.experts = 300;
	export_second_attempt("prime-rl");
	cr_assert(output_has(nil, sizeof(nil) - 1));
}
