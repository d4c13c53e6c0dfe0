/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the options of an export go together, and with its format. */
#include <errno.h>

#include "archive/export/plan.h"

/* ---- with the format ----------------------------------------------------- */

/* What goes by the places of layers and rows would take one for another. */
static int check_whole(const struct export_options *options, const struct export_format *format,
		       struct r3ring_error *err)
{
	const bool dense = format->layers == EXPORT_LAYERS_ALL;
	const char *option = options->layer_end                                 ? "--layers"
			     : options->position_first || options->position_end ? "--positions"
			     : dense && options->layers == EXPORT_LAYERS_MOE    ? "--moe-layers"
										: NULL;

	if (!format->whole || !option)
		return 0;
	return r3ring_error_set(err, -EINVAL,
				"%s: %s takes all of the model's layers, and rows from position 0 "
				"on; leave it out, or export safetensors",
				option, format->name);
}

static int check_dtype(const struct export_options *options, const struct export_format *format,
		       struct r3ring_error *err)
{
	const enum export_dtype dtype = options->dtype;

	if (format->fixed && dtype && dtype != format->dtype)
		return r3ring_error_set(err, -EINVAL,
					"--dtype %s: %s is always %s; leave --dtype out, or "
					"export safetensors",
					export_dtype_name(dtype), format->name,
					export_dtype_name(format->dtype));
	if (format->signed_by_experts && dtype && dtype != EXPORT_I8 && dtype != EXPORT_I16 &&
	    dtype != EXPORT_I32)
		return r3ring_error_set(err, -EINVAL,
					"--dtype %s: %s takes int8, int16 or int32; leave --dtype "
					"out, or export safetensors",
					export_dtype_name(dtype), format->name);
	return 0;
}

/* A trainer that knows no mask takes what is padded for what was missing. */
static int check_fills(const struct export_options *options, const struct export_format *format,
		       struct r3ring_error *err)
{
	const struct export_fill_rule *missing = &format->missing[options->missing];

	if (missing->refused)
		return r3ring_error_set(err, -EINVAL, "--missing %s: %s",
					export_fill_name(options->missing), missing->why);
	if (format->missing[options->pad].refused && options->pad != format->pad)
		return r3ring_error_set(err, -EINVAL,
					"--pad %s: %s takes it neither there nor for what is "
					"missing; leave --pad out, or export safetensors",
					export_fill_name(options->pad), format->name);
	return 0;
}

static int check_rows(const struct export_options *options, const struct export_format *format,
		      struct r3ring_error *err)
{
	const bool full = (options->rows ? options->rows : format->rows) == EXPORT_ROWS_FULL;

	if (format->fixed && options->rows && options->rows != format->rows)
		return r3ring_error_set(err, -EINVAL,
					"--rows %s: %s has its own rule; leave --rows out, or "
					"export safetensors",
					export_rows_name(options->rows), format->name);
	if (options->join && !format->container->patch)
		return r3ring_error_set(err, -EINVAL,
					"--join-turns: %s cannot be rewritten; export safetensors "
					"with --rows full",
					format->name);
	if (options->join && !full && format->fixed)
		return r3ring_error_set(err, -EINVAL,
					"--join-turns: %s has no row for the last token; leave it "
					"out, or export safetensors with --rows full",
					format->name);
	if (options->join && !full)
		return r3ring_error_set(err, -EINVAL,
					"--join-turns supplies the last token's row, which "
					"--rows minus-one leaves out: give --rows full");
	return 0;
}

static int check_requests(const struct export_options *options, const struct export_format *format,
			  struct r3ring_error *err)
{
	if (!format->one_request || options->requests < 2)
		return 0;
	return r3ring_error_set(err, -EINVAL,
				"--request: %s holds one request, and %u are asked for; export "
				"them one by one, or safetensors, which holds all",
				format->name, options->requests);
}

/* ---- all ----------------------------------------------------------------- */

int export_options_check(const struct export_options *options, const struct export_format *format,
			 struct r3ring_error *err)
{
	int rc;

	if (options->layer_end && options->layer_end <= options->layer_first)
		return r3ring_error_set(err, -EINVAL, "--layers %d:%d: no layer is in that range",
					options->layer_first, options->layer_end);
	if (options->position_end && options->position_end <= options->position_first)
		return r3ring_error_set(err, -EINVAL,
					"--positions %u:%u: no position is in that range",
					options->position_first, options->position_end);
	if (options->until_ns && options->until_ns <= options->since_ns)
		return r3ring_error_set(err, -EINVAL, "--until is not later than --since");
	if (options->pad == EXPORT_FILL_ERROR)
		return r3ring_error_set(err, -EINVAL, "--pad: -1, zeros or arange");
	rc = check_whole(options, format, err);
	if (!rc)
		rc = check_fills(options, format, err);
	if (!rc)
		rc = check_dtype(options, format, err);
	if (!rc)
		rc = check_rows(options, format, err);
	return rc ? rc : check_requests(options, format, err);
}
