#include "api/errors.h"

#include "base/util.h"
#include <string.h>

const struct api_error api_errors[] = {
    { "ARGUMENT_TOO_LONG", 400, "An argument or environment variable is above what the kernel passes on." },
    { "BAD_PATH", 400, "The path is not percent-encoded UTF-8, or has `.` or `..` segments." },
    { "BAD_REQUEST", 400, "The request breaks a rule of HTTP/1.1." },
    { "BAD_SETTING", 400, "The setting is unknown or its value breaks its rule." },
    { "BAD_WORKING_DIR", 400, "The working folder of an app or agent is not there." },
    { "INVALID_FILTER", 400, "The row filter has no form this service knows." },
    { "INVALID_JSON", 400, "The body is no JSON (RFC 8259)." },
    { "NOT_A_BACKUP", 400, "The file is no backup of this service." },
    { "NOT_LAUNCHABLE", 400, "The app has nothing to launch." },
    { "TABLE_UNFIT", 400, "A table lacks columns that an activities table has." },
    { "TOO_MANY_ARGUMENTS", 400, "An app or agent has more arguments than is allowed." },
    { "VALIDATION_ERROR", 400, "A field is missing or breaks its rule; `errors` lists every one." },
    { "ADMIN_REQUIRED", 401, "Only the local administrator may do this." },
    { "INVALID_APP_ID", 401, "The app id is not that of a registered app." },
    { "MISSING_APP_ID", 401, "Neither a developer key nor an app id came with the request." },
    { "HOST_NOT_ALLOWED", 403, "The Host header is neither a loopback name nor a configured one." },
    { "LINK_INVALID", 403, "The one-time link has been used or has expired." },
    { "ORIGIN_NOT_ALLOWED", 403, "The Origin is neither the service's own nor a configured one." },
    { "PERMISSION_DENIED", 403, "The person denied the permission named in `permission`." },
    { "PERMISSION_REQUIRED", 403, "The app has not been granted the permission named in `permission`." },
    { "AGENT_NOT_FOUND", 404, "There is no agent of this name." },
    { "APP_NOT_FOUND", 404, "There is no app with this id." },
    { "DELIVERY_NOT_FOUND", 404, "There is no delivery of this event id." },
    { "EVENT_NOT_FOUND", 404, "There is no calendar event with this id." },
    { "GRANT_NOT_FOUND", 404, "Nothing was decided about this permission of this app." },
    { "KEY_NOT_FOUND", 404, "There is no developer key with this id." },
    { "LINK_NOT_FOUND", 404, "There is no such one-time link." },
    { "NOT_FOUND", 404, "There is no such route or no such thing." },
    { "RUN_NOT_FOUND", 404, "There is no run with this id." },
    { "SESSION_NOT_FOUND", 404, "There is no such session." },
    { "TASK_NOT_FOUND", 404, "There is no task with this id." },
    { "THREAD_NOT_FOUND", 404, "There is no thread of this slug." },
    { "TOKEN_NOT_FOUND", 404, "No backend token has been synchronised." },
    { "UNKNOWN_FUNCTION", 404, "The backend has no such function." },
    { "UNKNOWN_TABLE", 404, "The backend has no such table." },
    { "VALUE_NOT_FOUND", 404, "There is no such value." },
    { "WORKSPACE_NOT_FOUND", 404, "There is no workspace of this slug." },
    { "METHOD_NOT_ALLOWED", 405, "The route knows other methods: see the Allow header." },
    { "REQUEST_TIMEOUT", 408, "The request did not arrive whole in time." },
    { "AGENT_EXISTS", 409, "An agent of this name is there already." },
    { "ALREADY_ATTEMPTED", 409, "This machine has failed the row before." },
    { "ALREADY_EXISTS", 409, "Something of this id or name is there already." },
    { "ALREADY_LOCKED", 409, "Another machine holds the row: `locked_by` names it." },
    { "APP_BUSY", 409, "The app is still stopping." },
    { "APP_EXISTS", 409, "An app of this id or name is there already." },
    { "DELIVERY_IN_PROGRESS", 409, "The event of this id is being handled right now." },
    { "FILE_EXISTS", 409, "There is a file of this name already." },
    { "LEASE_LOST", 409, "The row is no longer held by this machine and attempt." },
    { "NOT_CLAIMABLE", 409, "The row is not free to be claimed." },
    { "NOT_DIRTY", 409, "The row holds nothing new to work on." },
    { "QUARANTINED", 409, "Too many machines failed the row; a person must replay it." },
    { "TASK_ALREADY_FINISHED", 409, "The task has ended otherwise; nothing was changed." },
    { "THREAD_EXISTS", 409, "A thread of this slug is there already." },
    { "TOO_MANY_AGENTS", 409, "The largest number of agents is reached." },
    { "TOO_MANY_APPS", 409, "The largest number of apps is reached." },
    { "TOO_MANY_KEYS", 409, "The largest number of developer keys is reached." },
    { "TOO_MANY_SESSIONS", 409, "The largest number of sessions is reached." },
    { "UNSEAL_FAILED", 409, "A stored secret does not open with this master.key: give it again." },
    { "WORKSPACE_EXISTS", 409, "A workspace of this slug is there already." },
    { "BODY_TOO_LARGE", 413, "The body is above the limit of its route." },
    { "TOO_LARGE", 413, "What was sent or asked for is above a limit." },
    { "URI_TOO_LONG", 414, "The request target is above its limit." },
    { "EXPECTATION_FAILED", 417, "The only expectation understood is 100-continue." },
    { "HEADERS_TOO_LARGE", 431, "The head of the request is above its limits." },
    { "INTERNAL_ERROR", 500, "The service failed; its log names the reason under the x-request-id." },
    { "REPLY_TOO_LARGE", 500, "The answer is above its limit: ask for less." },
    { "STORE_DAMAGED", 500, "The database is damaged: `hearth doctor` says what to do." },
    { "STORE_ERROR", 500, "The service's own database failed." },
    { "STORE_REFUSED", 500, "The service's own database refused a change." },
    { "NOT_IMPLEMENTED", 501, "The service does not know this method or transfer coding." },
    { "COMMAND_NOT_EXECUTABLE", 502, "The program an app or agent needs may not be executed." },
    { "COMMAND_NOT_FOUND", 502, "The program an app or agent needs is not installed." },
    { "NOT_READY", 503, "A part the service needs is not ready: `reason` says which." },
    { "NOT_SERVING", 503, "This works only while the service runs." },
    { "NO_FREE_PORT", 503, "No port is free in the range of the settings apps.port_min and apps.port_max." },
    { "OVERLOADED", 503, "Too much waits already: try again after Retry-After seconds." },
    { "SHUTTING_DOWN", 503, "The service is stopping." },
    { "STORE_BUSY", 503, "The database is in use by something else: try again." },
    { "STORE_CLOSED", 503, "The service is stopping." },
    { "TOO_MANY_CHILDREN", 503, "Too many programs run already." },
    { "TOO_MANY_QUESTIONS", 503, "Too many permission requests wait for an answer." },
    { "TOO_MANY_STREAMS", 503, "Too many streams of changes are open." },
    { "VERSION_NOT_SUPPORTED", 505, "The protocol must be HTTP/1.1 or HTTP/1.0." },
    { "STORE_FULL", 507, "The disk is full." },
    { .code = NULL },
};

static const struct {
    int errno_value, status;
} by_errno[] = {
    { EINVAL, 400 },   { EACCES, 403 },    { EPERM, 403 },  { ENOENT, 404 },       { EEXIST, 409 }, { EBUSY, 409 },
    { ESTALE, 409 },   { EDQUOT, 409 },    { EALREADY, 409 }, { E2BIG, 413 },      { EFBIG, 413 },  { EMSGSIZE, 413 },
    { EAGAIN, 503 },   { ECANCELED, 503 }, { EPIPE, 503 },  { ETIMEDOUT, 504 },    { ENOSPC, 507 },
};

int api_error_status(int r, const struct err *e)
{
    for (const struct api_error *known = api_errors; known->code; known++)
        if (strcmp(known->code, e->code) == 0)
            return known->status;
    for (size_t i = 0; i < ARRAY_SIZE(by_errno); i++)
        if (by_errno[i].errno_value == -r)
            return by_errno[i].status;
    return 500;
}
