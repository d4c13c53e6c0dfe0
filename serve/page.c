/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <sys/types.h>

#include <microhttpd.h>
#include <sha2.h>

#include "channel/base64.h"
#include "serve/page.h"

#define HASH_TEXT (BASE64_LENGTH(SHA256_DIGEST_LENGTH) + 1)
#define POLICY_TEXT 512

/* Made by the Makefile of what join.sh says; ends with NUL. */
extern const char page_html[];
extern const unsigned long page_html_length;

/* The SHA-256 of what stands between two tags; of nothing where they are not there. */
static void hash_between(const char *page, const char *begin, const char *end, char text[HASH_TEXT])
{
	const char *from = strstr(page, begin);
	const char *to = from ? strstr(from, end) : NULL;
	uint8_t digest[SHA256_DIGEST_LENGTH];
	SHA2_CTX hash;

	SHA256Init(&hash);
	if (to) {
		from += strlen(begin);
		SHA256Update(&hash, (const uint8_t *)from, (size_t)(to - from));
	}
	SHA256Final(digest, &hash);
	base64_encode(digest, sizeof(digest), text);
}

int page_policy(const char *page, char *policy, unsigned long size)
{
	char style[HASH_TEXT], script[HASH_TEXT];

	hash_between(page, "<style>", "</style>", style);
	hash_between(page, "<script type=\"module\">", "</script>", script);
	return snprintf(policy, size,
			"default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; "
			"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
			"frame-ancestors 'none'",
			script, style);
}

struct MHD_Response *page_response(void)
{
	char policy[POLICY_TEXT];
	/* The library takes it for writable, and does not write. */
	struct MHD_Response *response = MHD_create_response_from_buffer(
		page_html_length, (void *)(uintptr_t)page_html, MHD_RESPMEM_PERSISTENT);

	if (!response)
		return NULL;
	page_policy(page_html, policy, sizeof(policy));
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/html; charset=utf-8");
	MHD_add_response_header(response, "Content-Security-Policy", policy);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
	MHD_add_response_header(response, "X-Frame-Options", "DENY");
	return response;
}
