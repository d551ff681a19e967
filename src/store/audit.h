/* The audit log (table audit): append-only, each entry carries the hash of the one before. Any thread.
 *
 * Triggers refuse UPDATE and DELETE. store_audit_trim() removes old entries at the beginning: number and hash of the last of them are kept
 * as the base that the rest continues, and are told in an entry of their own, so that the chain stays checkable. Count and hash of the head are kept apart (table meta), so that a cut tail shows.
 * Whoever can write the file can rebuild the whole chain: it shows damage and careless edits, not a forger.
 *
 *     r = store_audit_append(store, &(struct audit_row){ .actor = "cli", .action = "key.new", .subject = id }, e);
 */
#pragma once

#include "store/store.h"

struct audit_row {
    int64_t seq;                        /* from 1 (or behind the base), without gaps */
    const char *at;
    const char *actor;                  /* "admin", "cli", "app:<id>", "key:<fingerprint>", "service" */
    const char *action;                 /* "permission.allow", "permission.use", ... */
    const char *subject;                /* may be NULL */
    const char *detail;                 /* JSON text; may be NULL; never secrets or bodies */
    const char *prev_hash, *hash;       /* hex */
};

struct audit_verdict {
    int64_t n_entries;                  /* ever written, as far as the chain is whole */
    int64_t n_trimmed;                  /* of these, removed for their age */
    int64_t bad_seq;                    /* 0: the chain is whole */
    const char *reason;                 /* a sentence when bad_seq is not 0 */
};

/* seq, at and hashes are the store's. */
int store_audit_append(struct store *s, const struct audit_row *entry, struct err *e) MUST_CHECK;
/* The same inside a writer closure, so that the entry is stored with what it tells of or not at all. */
int store_audit_add(struct sql_db *db, const struct audit_row *entry, struct err *e) MUST_CHECK;
/* Newest first, seq < before (0: from the newest), at most limit (0: LIMIT_LIST_DEFAULT, never above LIMIT_LIST). */
int store_audit_list(struct store *s, struct arena *a, int64_t before, int64_t limit, struct audit_row **ret,
                     size_t *ret_n, struct err *e) MUST_CHECK;
/* Walks the chain. 0 also when it is broken: that is the verdict. */
int store_audit_verify(struct store *s, struct audit_verdict *ret, struct err *e) MUST_CHECK;
/* Some entries of before that moment, oldest first, the newest entry never; *ret_n 0: none is left. -EUCLEAN AUDIT_BROKEN
 * when the chain is not whole there: nothing is removed. */
int store_audit_trim(struct store *s, int64_t before_ms, int64_t *ret_n, struct err *e) MUST_CHECK;
/* Who trimmed tells it once at the end: an entry "audit.trim" with the base as detail. */
int store_audit_tell_trim(struct store *s, struct err *e) MUST_CHECK;
