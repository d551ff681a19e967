#include "store/tables/audit.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "store/meta.h"
#include "store/rows.h"

#define COLUMNS "seq, at, actor, action, subject, detail, prev_hash, hash"
#define FIRST_PREV_HASH "0000000000000000000000000000000000000000000000000000000000000000"

enum { TRIM_BATCH = 500 };

struct head {
    int64_t n_entries;
    char hash[HASH_HEX_SIZE];
};

static void read_entry(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct audit_row *)into = (struct audit_row){
        .seq = sql_int(rows, 0),
        .at = sql_text(rows, a, 1),
        .actor = sql_text(rows, a, 2),
        .action = sql_text(rows, a, 3),
        .subject = sql_text(rows, a, 4),
        .detail = sql_text(rows, a, 5),
        .prev_hash = sql_text(rows, a, 6),
        .hash = sql_text(rows, a, 7),
    };
}

/* Hashes each text after its length, so that different entries never have the same bytes. */
static void hash_entry(const struct audit_row *entry, char out[HASH_HEX_SIZE])
{
    const char *texts[] = { entry->prev_hash, entry->at, entry->actor, entry->action, entry->subject, entry->detail };
    struct buf bytes;

    buf_init(&bytes, LIMIT_REPLY);
    buf_printf(&bytes, "%lld", (long long)entry->seq);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (texts[i])
            buf_printf(&bytes, "|%zu:", strlen(texts[i]));
        else
            buf_add_str(&bytes, "|null");
        buf_add_str(&bytes, texts[i] ? texts[i] : "");
    }
    hash_text_hex(buf_slice(&bytes), out);
    buf_clear(&bytes);
}

/* --- the head --- */

/* key: META_AUDIT_HEAD or META_AUDIT_BASE. */
/* Reads number and hash of the first row; *ret is unchanged when there is none. */
static int take_head(struct sql_rows *rows, struct head *ret, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    int r = sql_step(rows, e);

    if (r <= 0)
        return r;
    ret->n_entries = sql_int(rows, 0);
    snprintf(ret->hash, sizeof(ret->hash), "%s", sql_text(rows, a, 1));
    return 0;
}

static int read_head(struct sql_db *db, const char *key, struct head *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    *ret = (struct head){ .hash = FIRST_PREV_HASH };
    r = sql_query(
        db, &rows, e,
        "SELECT CAST(substr(value, 1, instr(value, ':') - 1) AS INTEGER), substr(value, instr(value, ':') + 1) "
        "FROM meta WHERE key = ?",
        "s", key);
    return r < 0 ? r : take_head(rows, ret, e);
}

static int write_head(struct sql_db *db, const char *key, const struct head *head, struct err *e)
{
    return sql_exec(
        db, e,
        "INSERT INTO meta (key, value) VALUES (?, ? || ':' || ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        "sis", key, head->n_entries, head->hash);
}

/* --- append and list --- */

/* Continues from the stored head, not from the last row, so that a removed tail stays detectable. */
int store_audit_add(struct sql_db *db, const struct audit_row *entry, struct err *e)
{
    struct audit_row full = *entry;
    char now[TIME_TEXT_SIZE];
    struct head head, next;
    int r;

    r = read_head(db, META_AUDIT_HEAD, &head, e);
    if (r < 0)
        return r;
    clock_now_text(now);
    full.seq = head.n_entries + 1;
    full.at = now;
    full.prev_hash = head.hash;
    hash_entry(&full, next.hash);
    next.n_entries = full.seq;
    r = sql_exec(db, e, "INSERT INTO audit (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?)", "isssssss", full.seq,
                 full.at, full.actor, full.action, full.subject, full.detail, full.prev_hash, next.hash);
    return r < 0 ? r : write_head(db, META_AUDIT_HEAD, &next, e);
}

static int append(struct sql_db *db, void *arg, struct err *e)
{
    return store_audit_add(db, arg, e);
}

int store_audit_append(struct store *s, const struct audit_row *entry, struct err *e)
{
    return store_write(s, append, (void *)entry, e);
}

int store_audit_begin(struct store *s, const struct audit_row *entry, struct writer_job *job, struct err *e)
{
    *job = (struct writer_job){ .fn = append, .arg = (void *)entry, .e = e };
    return store_begin(s, job, e);
}

int store_audit_list(struct store *s, struct arena *a, int64_t before, int64_t limit, struct audit_row **ret,
                     size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM audit WHERE seq < ? ORDER BY seq DESC LIMIT ?",
                  "ii", before > 0 ? before : INT64_MAX, rows_limit(limit));
    return r < 0 ? r : rows_all(rows, a, sizeof(struct audit_row), read_entry, ret, ret_n, e);
}

/* --- verify --- */

/* What is wrong with an entry that should follow *at; NULL: nothing. */
static const char *wrong_with(const struct audit_row *entry, const struct head *at)
{
    char hash[HASH_HEX_SIZE];

    if (entry->seq != at->n_entries + 1)
        return "An entry is missing here.";
    if (strcmp(entry->prev_hash, at->hash) != 0)
        return "This entry does not carry the hash of the one before.";
    hash_entry(entry, hash);
    return strcmp(entry->hash, hash) != 0 ? "This entry was changed after it was written." : NULL;
}

/* Walks while the chain is intact; *at becomes the last good entry. */
static int walk(struct sql_rows *rows, struct head *at, const char **ret_wrong, struct err *e)
{
    int r;

    while ((r = sql_step(rows, e)) > 0 && !*ret_wrong) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct audit_row entry;

        read_entry(rows, a, &entry);
        *ret_wrong = wrong_with(&entry, at);
        if (!*ret_wrong) {
            at->n_entries = entry.seq;
            snprintf(at->hash, sizeof(at->hash), "%s", entry.hash);
        }
    }
    return r < 0 ? r : 0;
}

static int verify(struct sql_db *db, struct audit_verdict *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    struct head at, base, head;
    const char *wrong = NULL;
    int r;

    r = read_head(db, META_AUDIT_BASE, &base, e);
    at = base;
    if (r == 0)
        r = read_head(db, META_AUDIT_HEAD, &head, e);
    if (r == 0)
        r = sql_query(db, &rows, e, "SELECT " COLUMNS " FROM audit ORDER BY seq", "");
    if (r == 0)
        r = walk(rows, &at, &wrong, e);
    if (r < 0)
        return r;
    if (!wrong && at.n_entries < head.n_entries)
        wrong = "The entries from here to the end are missing.";
    else if (!wrong && (at.n_entries > head.n_entries || strcmp(at.hash, head.hash) != 0))
        wrong = "The log does not end where its kept head says.";
    *ret = (struct audit_verdict){
        .n_entries = at.n_entries, .n_trimmed = base.n_entries, .reason = wrong, .bad_seq = wrong ? at.n_entries + 1 : 0
    };
    return 0;
}

/* Uses one transaction, so that head and rows are of the same state. */
int store_audit_verify(struct store *s, struct audit_verdict *ret, struct err *e)
{
    struct sql_db *db = store_reader(s);
    int r, ended;

    r = sql_exec(db, e, "BEGIN", "");
    if (r < 0)
        return r;
    r = verify(db, ret, e);
    ended = sql_exec(db, r < 0 ? NULL : e, "COMMIT", "");
    return r < 0 ? r : ended;
}

/* --- trim --- */

struct trimming {
    const char *before;
    int64_t n;
};

/* Finds the last entry of the next batch of old entries; ret->n_entries 0: there are none. An old entry after a younger
 * entry stays until the younger entry is old too. */
static int find_new_base(struct sql_db *db, const char *before, struct head *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(
        db, &rows, e,
        "WITH oldest AS (SELECT seq, at, hash FROM audit WHERE seq < (SELECT max(seq) FROM audit) ORDER BY seq LIMIT ?2) "
        "SELECT seq, hash FROM oldest WHERE seq < coalesce((SELECT min(seq) FROM oldest WHERE at >= ?1), 9e18) "
        "ORDER BY seq DESC LIMIT 1",
        "si", before, (int64_t)TRIM_BATCH);

    *ret = (struct head){ .n_entries = 0 };
    return r < 0 ? r : take_head(rows, ret, e);
}

/* A damaged chain is evidence and is not trimmed. */
static int check_before_trim(struct sql_db *db, const struct head *until, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    const char *wrong = NULL;
    struct head at;
    int r = read_head(db, META_AUDIT_BASE, &at, e);

    if (r == 0)
        r = sql_query(db, &rows, e, "SELECT " COLUMNS " FROM audit WHERE seq <= ? ORDER BY seq", "i", until->n_entries);
    if (r == 0)
        r = walk(rows, &at, &wrong, e);
    if (r < 0 || !wrong)
        return r;
    return err_set(e, -EUCLEAN, "AUDIT_BROKEN", "It is broken at entry %lld, so nothing of it is removed: %s",
                   (long long)at.n_entries + 1, wrong);
}

static int trim(struct sql_db *db, void *arg, struct err *e)
{
    struct trimming *t = arg;
    struct head base;
    int r = find_new_base(db, t->before, &base, e);

    t->n = 0;
    if (r < 0 || base.n_entries == 0)
        return r;
    r = check_before_trim(db, &base, e);
    if (r == 0)
        r = write_head(db, META_AUDIT_BASE, &base, e);
    if (r == 0)
        r = sql_exec(db, e, "DELETE FROM audit WHERE seq <= ?", "i", base.n_entries);
    if (r == 0)
        t->n = sql_changes(db);
    return r;
}

int store_audit_trim(struct store *s, int64_t before_ms, int64_t *ret_n, struct err *e)
{
    char before[TIME_TEXT_SIZE];
    struct trimming t = { before, 0 };
    int r;

    clock_format(before_ms, before);
    r = store_write(s, trim, &t, e);
    if (r == 0)
        *ret_n = t.n;
    return r;
}

static int note_trim(struct sql_db *db, void *arg, struct err *e)
{
    char detail[HASH_HEX_SIZE + 64];
    struct head base;
    int r = read_head(db, META_AUDIT_BASE, &base, e);

    snprintf(detail, sizeof(detail), "{\"until_seq\":%lld,\"hash\":\"%s\"}", (long long)base.n_entries, base.hash);
    return r < 0 ? r
                 : store_audit_add(
                       db, &(struct audit_row){ .actor = "service", .action = "audit.trim", .detail = detail }, e);
}

int store_audit_note_trim(struct store *s, struct err *e)
{
    return store_write(s, note_trim, NULL, e);
}
