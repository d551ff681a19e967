/* POST /sdk/logs: an app's own log entries. Entries of an app go to the app's log (`hearth app logs`), entries of a
 * developer key without an app to the service's log. Clients send entries in batches and read only the status. */
#include "apps/apps.h"

#include "api/api.h"
#include "api/routes.h"
#include "base/limits.h"
#include "base/log.h"

enum { LEVEL_CHARS = 16, SOURCE_CHARS = 64, TIME_CHARS = 40 };

struct entry {
    const char *level, *source, *message, *timestamp;
    struct json_value context;
};
struct logs_body {
    struct field_list logs;
};

static const struct field entry_fields[] = {
    FIELD_STRING(struct entry, level, "level", .max = LEVEL_CHARS, .def_str = "info",
                 .help = "debug, info, warn, error or fatal"),
    FIELD_STRING(struct entry, source, "source", .max = SOURCE_CHARS, .def_str = "app"),
    FIELD_STRING(struct entry, message, "message", FIELD_REQUIRED),
    FIELD_STRING(struct entry, timestamp, "timestamp", .max = TIME_CHARS, .format = "date-time"),
    FIELD_ANY(struct entry, context, "context", .help = "kept beside the message as JSON"),
    FIELD_END,
};

static const struct field logs_fields[] = {
    FIELD_LIST(struct logs_body, logs, "logs", entry_fields, struct entry, FIELD_REQUIRED,
               .max = LIMIT_APP_LOG_ENTRIES),
    FIELD_END,
};

static const struct field logs_answer[] = { SHAPE_INT("ingested", .help = "entries taken"), FIELD_END };

/* "warn llm: the call failed {"model":"x"}" */
static void write_entry(struct buf *out, const struct entry *entry)
{
    buf_reset(out);
    buf_printf(out, "%s %s: ", entry->level, entry->source);
    buf_add_str(out, entry->message);
    if (!json_is_absent(entry->context)) {
        buf_add_char(out, ' ');
        json_print(out, entry->context);
    }
}

static enum log_level level_of(const char *word)
{
    enum log_level level;

    if (strcmp(word, "fatal") == 0)
        return LOG_ERROR;
    return log_level_parse(word, &level) == 0 ? level : LOG_INFO;
}

static void keep_entry(struct request *req, const struct entry *entry, struct buf *line)
{
    write_entry(line, entry);
    if (req->caller->app_id)
        app_log_add(req->api->apps, req->caller->app_id, buf_slice(line));
    else
        log_write(level_of(entry->level), "client", req->exchange->request.id, "%s: %s", req->caller->actor,
                  LOG_Q(buf_str(line)));
}

static int take_logs(struct request *req, struct response *res, struct err *e)
{
    const struct logs_body *body = req->body;
    const struct entry *entries = body->logs.items;
    struct buf line;

    buf_init(&line, LIMIT_BODY_DEFAULT * 2);
    for (size_t i = 0; i < body->logs.n; i++)
        keep_entry(req, &entries[i], &line);
    buf_clear(&line);
    json_add_int(&res->json, "ingested", (int64_t)body->logs.n);
    return 0;
}

const struct route app_log_routes[] = {
    { .method = HTTP_POST,
      .path = "/sdk/logs",
      .permission = PERM_NONE,
      .is_sdk = true,
      ROUTE_BODY(logs_fields, struct logs_body),
      .answer = logs_answer,
      .handler = take_logs,
      .summary = "Add entries to the caller's log",
      .tag = "Apps" },
    ROUTE_END,
};
