#include "store/tables/app_contacts.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"

struct addition {
    const char *app_id, *program;
    const struct audit_row *entry;
    bool is_new;
};

static int add(struct sql_db *db, void *arg, struct err *e)
{
    struct addition *in = arg;
    char now[TIME_TEXT_SIZE];
    int r;

    clock_now_text(now);
    r = sql_exec(
        db, e,
        "INSERT OR IGNORE INTO app_contacts (app_id, program, first_at) SELECT app_id, ?2, ?3 FROM apps WHERE app_id = ?1 "
        "AND (SELECT count(*) FROM app_contacts WHERE app_id = ?1) < ?4",
        "sssi", in->app_id, in->program, now, (int64_t)LIMIT_APP_CONTACTS);
    in->is_new = r == 0 && sql_changes(db) > 0;
    return in->is_new ? store_audit_add(db, in->entry, e) : r;
}

int store_app_contacts_add(struct store *s, const char *app_id, const char *program, const struct audit_row *entry,
                           bool *ret_is_new, struct err *e)
{
    struct addition in = { app_id, program, entry, false };
    int r = store_write(s, add, &in, e);

    if (r == 0)
        *ret_is_new = in.is_new;
    return r;
}

static void read_contact(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct app_contact_row *)into = (struct app_contact_row){
        .app_id = sql_text(rows, a, 0),
        .app_name = sql_text(rows, a, 1),
        .program = sql_text(rows, a, 2),
        .first_at = sql_text(rows, a, 3),
    };
}

int store_app_contacts_list(struct store *s, struct arena *a, struct app_contact_row **ret, size_t *ret_n,
                            struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(
        store_reader(s), &rows, e,
        "SELECT c.app_id, a.name, c.program, c.first_at FROM app_contacts c JOIN apps a ON a.app_id = c.app_id "
        "ORDER BY c.first_at DESC, c.program LIMIT ?",
        "i", (int64_t)LIMIT_LIST);
    return r < 0 ? r : rows_all(rows, a, sizeof(struct app_contact_row), read_contact, ret, ret_n, e);
}
