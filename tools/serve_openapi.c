/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/openapi.json: docs/openapi.json, as it was when the program was built. */
#include <microhttpd.h>

#include "tools/serve_api.h"

__asm__(".section .rodata\n"
	".global api_openapi_text\n"
	".global api_openapi_text_end\n"
	".hidden api_openapi_text\n"
	".hidden api_openapi_text_end\n"
	"api_openapi_text:\n"
	".incbin \"docs/openapi.json\"\n"
	"api_openapi_text_end:\n"
	".byte 0\n"
	".previous\n");

void api_openapi(void *context, const struct http_request *request, struct http_answer *answer)
{
	(void)context;
	(void)request;
	/* The library takes it for writable, and does not write. */
	answer->response = MHD_create_response_from_buffer(
		(size_t)(api_openapi_text_end - api_openapi_text),
		(void *)(uintptr_t)api_openapi_text, MHD_RESPMEM_PERSISTENT);
	if (answer->response)
		MHD_add_response_header(answer->response, MHD_HTTP_HEADER_CONTENT_TYPE,
					"application/json");
}
