/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that clients send, checked. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#include "tools/serve_api.h"

bool api_only_fields(const json_t *body, const char *const *known, struct http_answer *answer)
{
	const char *name;
	json_t *value;

	if (!body) {
		http_refuse(answer, MHD_HTTP_BAD_REQUEST, "a JSON object is needed as the body");
		return false;
	}
	/* jansson's iteration takes no const. */
	json_object_foreach ((json_t *)(uintptr_t)body, name, value) {
		const char *const *one = known;

		while (*one && strcmp(*one, name) != 0)
			one++;
		if (*one)
			continue;
		http_refuse(answer, MHD_HTTP_BAD_REQUEST, "there is no field \"%.64s\"", name);
		return false;
	}
	return true;
}

bool api_text(const json_t *body, const char *name, const char **text, struct http_answer *answer)
{
	const json_t *value = json_object_get(body, name);

	if (!value)
		return true;
	if (!json_is_string(value) ||
	    strlen(json_string_value(value)) != json_string_length(value)) {
		http_refuse(answer, MHD_HTTP_BAD_REQUEST, "\"%s\" is no text", name);
		return false;
	}
	*text = json_string_value(value);
	return true;
}

bool api_number(const json_t *body, const char *name, uint64_t least, uint64_t most,
		uint64_t *number, struct http_answer *answer)
{
	const json_t *value = json_object_get(body, name);
	json_int_t integer = json_integer_value(value);

	if (!value)
		return true;
	if (!json_is_integer(value) || integer < 0 || (uint64_t)integer < least ||
	    (uint64_t)integer > most) {
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "\"%s\" is no integer from %" PRIu64 " to %" PRIu64, name, least, most);
		return false;
	}
	*number = (uint64_t)integer;
	return true;
}

bool api_flag(const json_t *body, const char *name, bool *flag, struct http_answer *answer)
{
	const json_t *value = json_object_get(body, name);

	if (!value)
		return true;
	if (!json_is_boolean(value)) {
		http_refuse(answer, MHD_HTTP_BAD_REQUEST, "\"%s\" is neither true nor false", name);
		return false;
	}
	*flag = json_is_true(value);
	return true;
}

bool api_number_of(const char *text, const char *name, uint64_t least, uint64_t most,
		   uint64_t *number, struct http_answer *answer)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || value < least || value > most) {
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "%s=%.32s is no integer from %" PRIu64 " to %" PRIu64, name, text,
			    least, most);
		return false;
	}
	*number = value;
	return true;
}

bool api_query_number(const struct http_request *request, const char *name, uint64_t least,
		      uint64_t most, uint64_t *number, struct http_answer *answer)
{
	const char *text = http_query(request, name);

	return !text || api_number_of(text, name, least, most, number, answer);
}
