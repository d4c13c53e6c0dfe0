/* SPDX-License-Identifier: Apache-2.0 */
/* GET / and GET /v1/history: what people look at, and the last minutes. */
#include <errno.h>
#include <stdlib.h>

#include <microhttpd.h>

#include "serve/page.h"
#include "tools/json_values.h"
#include "tools/serve_api.h"
#include "tools/serve_frame.h"

void api_page(void *context, const struct http_request *request, struct http_answer *answer)
{
	(void)context;
	(void)request;
	answer->response = page_response();
	if (!answer->response)
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory");
}

/* ---- the last minutes ------------------------------------------------------ */

void api_history(void *context, const struct http_request *request, struct http_answer *answer)
{
	const struct api *api = context;
	struct served *served = api_instance(api, http_query(request, "instance"), answer);
	uint64_t after = 0;

	if (!served || !api_query_number(request, "after", 0, UINT64_MAX, &after, answer))
		return;
	answer->json = frame_list(past_of(api->past, served), &after);
	if (!answer->json)
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory");
}

void api_history_frame(void *context, const struct http_request *request,
		       struct http_answer *answer)
{
	const struct api *api = context;
	struct served *served = api_instance(api, http_query(request, "instance"), answer);
	struct history_picture picture;
	uint64_t id;
	int r;

	if (!served || !api_number_of(request->argument, "the frame", 1, UINT64_MAX, &id, answer))
		return;
	r = history_get(past_of(api->past, served), id, &picture);
	if (r == -ENOENT) {
		http_refuse(answer, MHD_HTTP_NOT_FOUND,
			    "no such frame: it is older than what is kept, or yet to come");
		return;
	}
	if (r == 0)
		answer->json = frame_of_past(&picture);
	history_picture_free(&picture);
	if (!answer->json)
		http_refuse(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory");
}
