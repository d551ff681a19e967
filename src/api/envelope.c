#include "api/envelope.h"

void error_write_fields(struct json_writer *w, const struct err *e)
{
    if (e->n_fields == 0)
        return;
    json_begin_array_as(w, "errors");
    for (unsigned i = 0; i < MIN(e->n_fields, ERR_MAX_FIELDS); i++) {
        json_begin_object(w);
        json_add_string(w, "field", e->fields[i].field);
        json_add_string(w, "rule", e->fields[i].rule);
        json_end(w);
    }
    json_end(w);
}

static int write_envelope(struct json_writer *w, struct http_exchange *x, int status, const struct err *e)
{
    json_add_bool(w, "success", false);
    json_add_string(w, "error", e->text);
    if (*e->code) /* one failure has no code: specification, Errors, vectors/register */
        json_add_string(w, "code", e->code);
    for (unsigned i = 0; i < MIN(e->n_extras, ERR_MAX_EXTRAS); i++)
        json_add_string(w, e->extras[i].key, e->extras[i].value);
    error_write_fields(w, e);
    return status;
}

const struct error_form error_envelope = { .name = "Error", .write = write_envelope };
