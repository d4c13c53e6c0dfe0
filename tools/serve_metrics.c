/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics, for Prometheus. */
#include <stdio.h>
#include <stdlib.h>

#include <microhttpd.h>

#include "serve/exposition.h"
#include "tools/serve_api.h"

void api_metrics(void *context, const struct http_request *request, struct http_answer *answer)
{
	const struct api *api = context;
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	int r = out ? metrics_write(api->metrics, out) : -1;

	(void)request;
	if (out && fclose(out))
		r = -1;
	if (r == 0)
		answer->response =
			MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
	if (answer->response) {
		MHD_add_response_header(answer->response, MHD_HTTP_HEADER_CONTENT_TYPE,
					EXPOSITION_TYPE);
		MHD_add_response_header(answer->response, MHD_HTTP_HEADER_CACHE_CONTROL,
					"no-store");
		return;
	}
	free(text);
	http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory for metrics");
}
