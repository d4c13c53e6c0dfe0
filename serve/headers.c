/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "serve/headers.h"

const char *header_of(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

struct header_count {
	const char *name;
	unsigned int count;
};

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	struct header_count *header = context;

	(void)kind;
	(void)value;
	header->count += strcasecmp(name, header->name) == 0;
	return MHD_YES;
}

bool headers_have_many(struct MHD_Connection *connection, const char *name)
{
	struct header_count header = {.name = name};

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &header);
	return header.count > 1;
}

static enum MHD_Result count_blank_name(void *context, enum MHD_ValueKind kind, const char *name,
					const char *value)
{
	unsigned int *count = context;

	(void)kind;
	(void)value;
	*count += name[strcspn(name, " \t")] != '\0';
	return MHD_YES;
}

/* "Content-Length : 2" is none to the library, and one to a proxy in front: RFC 9112, 5.1. */
static bool has_blank_name(struct MHD_Connection *connection)
{
	unsigned int count = 0;

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_blank_name, &count);
	return count > 0;
}

/* No other coding is taken apart here, nor two of them. */
static bool coding_is_known(struct MHD_Connection *connection)
{
	const char *coding = header_of(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING);

	return !coding || (!headers_have_many(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) &&
			   strcasecmp(coding, "chunked") == 0);
}

/* Where two headers say how long the body is, a proxy in front may have gone by the other one, and
 * what is taken for the next request is a part of this one: RFC 9112, 6.3. */
bool headers_tell_length(struct MHD_Connection *connection, struct http_answer *answer)
{
	if (headers_have_many(connection, MHD_HTTP_HEADER_CONTENT_LENGTH))
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "more than one Content-Length header: send one");
	else if (header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH) &&
		 header_of(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING))
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "both Content-Length and Transfer-Encoding say how long the body is: "
			    "send one of them");
	else if (!coding_is_known(connection))
		http_refuse(answer, MHD_HTTP_NOT_IMPLEMENTED,
			    "Transfer-Encoding: \"chunked\" once, or Content-Length");
	else if (has_blank_name(connection))
		http_refuse(answer, MHD_HTTP_BAD_REQUEST,
			    "a header's name has a blank in it or before its colon");
	else
		return true;
	return false;
}
