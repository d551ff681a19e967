#include "api/resources/face_request.h"

#include "api/api.h"
#include "base/clock.h"
#include "face/realtime.h"

enum { MS_A_SECOND = 1000 };

const char *face_request_key(const struct request *req, const char *apikey_in_query)
{
    const struct http_request *in = &req->exchange->request;
    const char *header = http_header(in, "apikey");

    if (apikey_in_query && *apikey_in_query)
        return apikey_in_query;
    return header ? header : http_header(in, "x-api-key");
}

int face_request_need(const struct request *req, struct err *e)
{
    if (!req->api->is_serving)
        return err_set(e, -ENOTSUP, "NOT_SERVING",
                       "Apps of the hosted service are served only while the service runs.");
    return req->api->realtime ? 0
                              : err_set(e, -ENOENT, "FACE_OFF",
                                        "The setting face.enabled is off: apps of the hosted service are not served.");
}

int face_request_caller(const struct request *req, const char *apikey_in_query, struct face_caller *ret, struct err *e)
{
    const struct face_keys *keys = NULL;
    int r = face_request_need(req, e);

    if (r == 0)
        r = realtime_keys(req->api->realtime, &keys, e);
    return r < 0 ? r
                 : face_caller_of_request(keys, face_request_key(req, apikey_in_query),
                                          http_header(&req->exchange->request, "authorization"),
                                          clock_wall_ms() / MS_A_SECOND, ret, e);
}
