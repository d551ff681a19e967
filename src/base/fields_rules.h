/* Shared by the readers of field tables: checks one value against the rule of its kind. For src/base/fields*.c only.
 *
 * A value that satisfies its rule is stored; otherwise the violation is added to e under `path` and -EINVAL is
 * returned.
 */
#pragma once

#include "base/fields.h"

double field_max(const struct field *f); /* the row's maximum, or the default of its kind */

/* Adds "`path` must be ..." for the row's kind and bounds. Returns -EINVAL. */
int field_refuse(const struct field *f, const char *path, struct err *e);
int field_check_text(const struct field *f, struct slice text, const char *path, struct err *e) MUST_CHECK;
int field_store_scalar(const struct field *f, struct json_value v, void *into, const char *path,
                       struct err *e) MUST_CHECK;
void field_store_default(const struct field *f, void *into);
void field_mark_present(const struct field *f, void *into);
