/* The audit log, for the local administrator. */
#include "identity/audit.h"

#include "api/api.h"
#include "api/routes.h"

struct audit_query {
    int64_t before, limit;
};

static const struct field audit_query_fields[] = {
    FIELD_INT(struct audit_query, before, "before", .max = 9e15, .help = "entries with a smaller seq; 0: the newest"),
    FIELD_INT(struct audit_query, limit, "limit", .min = 1, .max = LIMIT_LIST, .def = LIMIT_LIST_DEFAULT),
    FIELD_END,
};

static const struct field entry_shape[] = {
    SHAPE_INT("seq"),
    SHAPE_TIME("at"),
    SHAPE_STRING("actor"),
    SHAPE_STRING("action"),
    SHAPE_STRING("subject", .flags = FIELD_NULLABLE),
    SHAPE_ANY("detail", .flags = FIELD_NULLABLE),
    SHAPE_STRING("hash"),
    FIELD_END,
};

static const struct field audit_answer[] = { SHAPE_LIST("entries", entry_shape), FIELD_END };

static const struct field verdict_answer[] = {
    SHAPE_BOOL("whole"),
    SHAPE_INT("entries"),
    SHAPE_INT("trimmed", .help = "before them, removed for their age (audit.keep_days)"),
    SHAPE_INT("bad_seq", .flags = FIELD_NULLABLE),
    SHAPE_STRING("reason", .flags = FIELD_NULLABLE),
    FIELD_END,
};

static void write_entry(struct json_writer *w, const struct audit_row *row)
{
    json_begin_object(w);
    json_add_int(w, "seq", row->seq);
    json_add_string(w, "at", row->at);
    json_add_string(w, "actor", row->actor);
    json_add_string(w, "action", row->action);
    json_add_string(w, "subject", row->subject);
    json_add_raw(w, "detail", row->detail);
    json_add_string(w, "hash", row->hash);
    json_end(w);
}

static int list_audit(struct request *req, struct response *res, struct err *e)
{
    const struct audit_query *query = req->query;
    struct audit_row *rows;
    size_t n;
    int r;

    r = audit_list(req->api->identity, req->arena, query->before, query->limit, &rows, &n, e);
    if (r < 0)
        return r;
    json_begin_array_as(&res->json, "entries");
    for (size_t i = 0; i < n; i++)
        write_entry(&res->json, &rows[i]);
    json_end(&res->json);
    return 0;
}

static int verify_audit(struct request *req, struct response *res, struct err *e)
{
    struct audit_verdict verdict = { 0 };
    int r;

    r = audit_verify(req->api->identity, &verdict, e);
    if (r < 0)
        return r;
    json_add_bool(&res->json, "whole", verdict.bad_seq == 0);
    json_add_int(&res->json, "entries", verdict.n_entries - verdict.n_trimmed);
    json_add_int(&res->json, "trimmed", verdict.n_trimmed);
    if (verdict.bad_seq)
        json_add_int(&res->json, "bad_seq", verdict.bad_seq);
    else
        json_add_null(&res->json, "bad_seq");
    json_add_string(&res->json, "reason", verdict.bad_seq ? verdict.reason : NULL);
    return 0;
}

const struct route audit_routes[] = {
    { .method = HTTP_GET,
      .path = "/api/audit",
      .permission = PERM_ADMIN,
      ROUTE_QUERY(audit_query_fields, struct audit_query),
      .answer = audit_answer,
      .handler = list_audit,
      .summary = "Audit log, newest first",
      .tag = "Audit" },
    { .method = HTTP_GET,
      .path = "/api/audit/verify",
      .permission = PERM_ADMIN,
      .kind = ROUTE_LONG,
      .answer = verdict_answer,
      .handler = verify_audit,
      .summary = "Is the chain of the audit log whole",
      .tag = "Audit" },
    ROUTE_END,
};
