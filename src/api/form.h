/* Reads a body in multipart/form-data (RFC 7578, RFC 2046 section 5.1): files and fields. Bytes stay where they are.
 * Any thread.
 *
 *     if (form_is_type(content_type))
 *         r = form_read(content_type, body, &form, e);
 *     file = form_file(&form, "file");
 *     r = form_fields(&form, table, &fields, a, e);
 */
#pragma once

#include "base/fields.h"
#include "base/limits.h"

struct form_part {
    struct slice name, data; /* borrowed from the body */
    bool is_file;            /* it has the name of a file */
};

struct form {
    struct form_part parts[LIMIT_FORM_PARTS];
    size_t n;
};

bool form_is_type(const char *content_type);
/* -EINVAL BAD_FORM names the rule. */
int form_read(const char *content_type, struct slice body, struct form *ret, struct err *e) MUST_CHECK;
/* The first part of this name, be it a file or a field; NULL: none. */
const struct form_part *form_find(const struct form *form, const char *name);
/* Reads the parts that are no files into a struct, by the rules of fields_read_query(); of parts with one name the
 * first counts. */
int form_fields(const struct form *form, const struct field *table, void *into, struct arena *a,
                struct err *e) MUST_CHECK;
