/* GET /api/events: one SSE stream of changes for an administrator session (pending permission, task, app status).
 *
 * Publishing is for any thread and never waits: a stream whose buffer is full misses changes and gets `event: resync`
 * when it has room again, upon which the reader fetches the lists again. At most LIMIT_EVENT_STREAMS streams. events:
 * `contact` {app_id, app_name, program}, `microphone` {status: open or closed, caller, app_id, app_name}, `mcp_server`
 * {name, status}, `provider` {status: "found"}, `permission` {pending: n}, `approval` {pending: n}, `task` {uuid,
 * status}, `app` {app_id, status}.
 */
#pragma once

#include "api/api.h"
#include "http/sse.h"

struct api_events;

struct api_events *api_events_new(struct api *api) MUST_CHECK;
struct api_events *api_events_free(struct api_events *ev); /* after the loop has ended */
/* Ends every stream. Loop thread. */
void api_events_end_streams(struct api_events *ev);

/* Sends an event to every reader. Any thread. */
void api_events_task(struct api_events *ev, const char *task_uuid, const char *status);
void api_events_app(struct api_events *ev, const char *app_id);
void api_events_consent(struct api_events *ev);
void api_events_approval(struct api_events *ev);
void api_events_provider(struct api_events *ev); /* a model server was found and waits for the user's decision */
void api_events_mcp_server(struct api_events *ev, const char *name);
/* A caller listens to the microphone, or no longer does. app_id and app_name: NULL for a caller that is no app. */
void api_events_microphone(struct api_events *ev, const char *caller, const char *app_id, const char *app_name,
                           bool is_open);
void api_events_contact(struct api_events *ev, const char *app_id, const char *app_name, const char *program);
