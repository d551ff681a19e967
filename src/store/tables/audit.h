/* The audit log (table audit): append-only, each entry contains the hash of the previous entry. Any thread.
 *
 * Triggers refuse UPDATE and DELETE. store_audit_trim() removes old entries at the beginning: number and hash of the
 * last removed entry are kept as the base of the remaining chain and recorded in an entry of their own, so that the
 * chain can still be verified. Count and hash of the head are stored separately (table meta), so that a removed tail is
 * detected. A process that can write the file can rebuild the whole chain: the log reveals damage and careless edits,
 * not a forger.
 *
 *     r = store_audit_append(store, &(struct audit_row){ .actor = "cli", .action = "key.new", .subject = id }, e);
 */
#pragma once

#include "store/store.h"

struct audit_row {
    int64_t seq; /* from 1 (or after the base), without gaps */
    const char *at;
    const char *actor;            /* "admin", "cli", "app:<id>", "key:<fingerprint>", "service" */
    const char *action;           /* "permission.allow", "permission.use", ... */
    const char *subject;          /* may be NULL */
    const char *detail;           /* JSON text; may be NULL; never secrets or bodies */
    const char *prev_hash, *hash; /* hex */
};

struct audit_verdict {
    int64_t n_entries;  /* ever written, as far as the chain is intact */
    int64_t n_trimmed;  /* of these, those removed by age */
    int64_t bad_seq;    /* 0: the chain is intact */
    const char *reason; /* a sentence when bad_seq is not 0 */
};

/* The store sets seq, at and the hashes. */
int store_audit_append(struct store *s, const struct audit_row *entry, struct err *e) MUST_CHECK;
/* The same in two halves: *job, entry and e live until writer_end(job), which returns when the entry is on disk. */
int store_audit_begin(struct store *s, const struct audit_row *entry, struct writer_job *job, struct err *e) MUST_CHECK;
/* The same inside a writer closure, so that the entry and the change it records are stored together or not at all. */
int store_audit_add(struct sql_db *db, const struct audit_row *entry, struct err *e) MUST_CHECK;
/* Newest first, seq < before (0: from the newest), at most limit (0: LIMIT_LIST_DEFAULT, never above LIMIT_LIST). */
int store_audit_list(struct store *s, struct arena *a, int64_t before, int64_t limit, struct audit_row **ret,
                     size_t *ret_n, struct err *e) MUST_CHECK;
/* Verifies the chain. Returns 0 also for a broken chain: see the verdict. */
int store_audit_verify(struct store *s, struct audit_verdict *ret, struct err *e) MUST_CHECK;
/* Removes some entries from before that time, oldest first, never the newest entry; *ret_n 0: none are left. -EUCLEAN
 * AUDIT_BROKEN when that part of the chain is damaged: nothing is removed. */
int store_audit_trim(struct store *s, int64_t before_ms, int64_t *ret_n, struct err *e) MUST_CHECK;
/* Call once after trimming: adds an entry "audit.trim" with the base as detail. */
int store_audit_note_trim(struct store *s, struct err *e) MUST_CHECK;
