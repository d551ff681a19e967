/* What went wrong, for machines (code) and for a person (text).
 *
 * A function that can fail returns 0 or a negative errno and takes `struct err *e` last. The caller owns e and starts
 * it as `struct err e = {0}` (or by err_init()); a callee fills it with err_set() and never clears it. e may be NULL:
 * then only the number is returned. Any thread; never shared between threads.
 *
 *     if (n > LIMIT_X)
 *         return err_set(e, -E2BIG, "VALIDATION_ERROR", "limit must be at most %d", LIMIT_X);
 */
#pragma once

#include "base/util.h"

enum { ERR_MAX_FIELDS = 32, ERR_MAX_EXTRAS = 4 };

struct err_field {
    char field[80]; /* dotted path as the sender wrote it: "config.args[2]" */
    char rule[200]; /* "must be a string of at most 128 characters" */
};

struct err_extra {
    char key[24]; /* an additional member of the envelope: "permission", "reason" */
    char value[200];
};

struct err {
    char code[40];  /* upper snake case, stable: clients switch on it */
    char text[640]; /* one sentence; names the field and the rule */
    struct err_field fields[ERR_MAX_FIELDS];
    unsigned n_fields; /* may exceed ERR_MAX_FIELDS: further violations are only counted */
    struct err_extra extras[ERR_MAX_EXTRAS];
    unsigned n_extras;
    int64_t retry_after_ms; /* when a retry may succeed; 0: unknown */
    char hidden[128];       /* a host in text that only administrators and the log may see; "": none */
    const char *hidden_as;  /* a literal that replaces the host and its port for everyone else */
    unsigned hidden_from;   /* bytes at the start of text that do not contain the host */
};

/* Like = {0}, without clearing ten kilobytes: for code that every request runs. Array elements beyond the counts are
 * never read. */
static inline void err_init(struct err *e)
{
    e->code[0] = e->text[0] = e->hidden[0] = '\0';
    e->n_fields = e->n_extras = e->hidden_from = 0;
    e->retry_after_ms = 0;
    e->hidden_as = NULL;
}

/* The error of a long-lived object that rarely has one: *place is NULL until the first call allocates it. Owned by the
 * caller: free(). */
struct err *err_place(struct err **place);

/* Fills code and text and returns r, so that `return err_set(...)` reads well. r must be negative. */
int err_set(struct err *e, int r, const char *code, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* Adds one violated rule (code becomes VALIDATION_ERROR, text the first violation: "`limit` must be an integer").
 * Returns -EINVAL. */
int err_add_field(struct err *e, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Adds a member to the envelope. */
void err_add_extra(struct err *e, const char *key, const char *value);

/* Replaces the hidden host in the text, for readers who may not see it. */
void err_strip_hidden(struct err *e);

/* Puts "prefix: " before the text already there. Returns r. */
int err_prefix(struct err *e, int r, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The code of a lack of resources (TOO_FEW_FILES, OUT_OF_MEMORY), which the client may try again; else `otherwise`. */
const char *err_code_of(int r, const char *otherwise);

/* For a failed system call: the code of err_code_of(), else INTERNAL_ERROR; text "<what>: <strerror>". Returns
 * -errno_value. */
int err_errno(struct err *e, int errno_value, const char *fmt, ...) PRINTF_LIKE(3, 4);
