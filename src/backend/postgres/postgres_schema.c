#include "backend/postgres/postgres_schema.h"
#include "backend/postgres/postgres.h"
#include "backend/postgres/postgres_pieces.h"
#include "backend/refusals_sql.h"
#include "base/limits.h"

#include <string.h>

/* Nothing of it depends on the settings of the session that runs it. The lock is held to the end: two set-ups at the
 * same time would disturb each other. */
static const char script_begin[] = "BEGIN;\n"
                                   "SET LOCAL client_min_messages = warning;\n"
                                   "SET LOCAL search_path = pg_catalog, pg_temp;\n"
                                   "SET LOCAL lock_timeout = '30s';\n"
                                   "SET LOCAL statement_timeout = 0;\n"
                                   "DO $do$ BEGIN\n"
                                   "    IF current_setting('server_version_num')::int < 140000 THEN\n"
                                   "        RAISE EXCEPTION 'PostgreSQL 14 or newer is needed';\n"
                                   "    END IF;\n"
                                   "END $do$;\n";

/* ---- the pieces in order ---- */

struct walk {
    struct postgres_tables *tables;
    int (*fn)(struct walk *w, struct postgres_table *t, const struct postgres_piece *piece, struct err *e);
    void *arg;
};

static int each(struct walk *w, struct postgres_table *t, const struct postgres_piece *pieces, struct err *e)
{
    int r = 0;

    for (; r == 0 && pieces->what; pieces++)
        r = w->fn(w, t, pieces, e);
    return r;
}

static int each_of_tables(struct walk *w, const struct postgres_schema *s, const struct postgres_piece *pieces,
                          struct err *e)
{
    int r = each(w, postgres_table_activities(w->tables), pieces, e);

    for (size_t i = 0; r == 0 && i < s->n_tables; i++)
        r = each(w, postgres_table_of(w->tables, s->tables[i]), pieces, e);
    return r;
}

static int walk_rights(struct walk *w, const struct postgres_schema *s, struct err *e)
{
    int r = each_of_tables(w, s, postgres_right_pieces, e);

    if (r == 0)
        r = each(w, postgres_table_deletions(w->tables), postgres_right_pieces, e);
    return r < 0 ? r : each(w, postgres_table_activities(w->tables), postgres_role_pieces, e);
}

/* Before the tables, which become members of it. */
static int walk_publication(struct walk *w, const struct postgres_schema *s, struct err *e)
{
    const struct postgres_piece *pieces =
        s->events == POSTGRES_EVENTS_AUTO ? postgres_auto_publication_pieces : postgres_publication_pieces;

    return s->events == POSTGRES_EVENTS_OUTBOX ? 0 : each(w, postgres_table_activities(w->tables), pieces, e);
}

static int walk_all(struct walk *w, const struct postgres_schema *s, struct err *e)
{
    struct postgres_table *any = postgres_table_activities(w->tables);
    int r = each(w, any, postgres_database_pieces, e);

    if (r == 0)
        r = walk_publication(w, s, e);
    if (r == 0)
        r = each_of_tables(w, s, postgres_table_pieces, e);
    if (r == 0)
        r = each(w, postgres_table_deletions(w->tables), postgres_table_pieces, e);
    if (r == 0)
        r = each(w, any, postgres_function_pieces, e);
    if (r == 0)
        r = each_of_tables(w, s, postgres_listed_pieces, e);
    if (r == 0 && s->role)
        r = walk_rights(w, s, e);
    return r < 0 ? r : each(w, any, postgres_version_pieces, e);
}

/* ---- the script ---- */

/* A comment of one line, whatever a name contains. */
static void put_comment(struct buf *out, const char *text)
{
    buf_add_str(out, "\n-- ");
    for (; *text; text++)
        buf_add_char(out, (unsigned char)*text < ' ' ? ' ' : *text);
    buf_add_char(out, '\n');
}

static int put_piece(struct walk *w, struct postgres_table *t, const struct postgres_piece *piece, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    put_comment(w->arg, postgres_sql_once(a, t, piece->what));
    postgres_sql_put(w->arg, t, piece->make);
    return 0;
}

char *postgres_schema_sql(struct arena *a, const struct postgres_schema *s)
{
    struct walk w = { .tables = postgres_tables_new(s->abbr, s->role), .fn = put_piece };
    struct buf out;

    buf_init(&out, LIMIT_REPLY);
    buf_add_str(&out, script_begin);
    w.arg = &out;
    (void)!walk_all(&w, s, NULL);
    buf_add_str(&out, "\nCOMMIT;\n");
    postgres_tables_free(w.tables);
    return buf_to_arena(&out, a);
}

/* ---- on a database ---- */

static int run_script(struct pg_link *link, const struct net_wait *wait, const char *sql, bool *ret_is_undone,
                      struct err *e)
{
    const struct pg_statement st = { .sql = sql, .is_script = true };
    struct err why = { 0 };
    int r = pg_link_run(link, wait, &st, &why);

    if (r < 0 && pg_link_sqlstate(link)[0]) {
        *ret_is_undone = refusals_is_undone(pg_link_sqlstate(link));
        return refusals_sqlstate(pg_link_sqlstate(link), NULL, &why, e);
    }
    if (r < 0 && e)
        *e = why;
    return r;
}

/* On a connection of its own, which ends the transaction of a script that failed. */
static int run_once(const struct postgres_place *place, const struct net_wait *wait, const char *sql,
                    bool *ret_is_undone, struct err *e)
{
    struct pg_link *link = NULL;
    int r = postgres_pool_connect(place, wait, &link, e);

    *ret_is_undone = false;
    if (r == 0)
        r = run_script(link, wait, sql, ret_is_undone, e);
    pg_link_close(link);
    return r;
}

int postgres_schema_run(const struct postgres_place *place, const char *sql, struct err *e)
{
    const struct net_wait wait = net_wait_of(LIMIT_BACKEND_SCRIPT_MS, NULL, NULL);
    bool is_undone = true;
    int r = -EBUSY;

    for (int i = 0; is_undone && i < LIMIT_BACKEND_ATTEMPTS; i++)
        r = run_once(place, &wait, sql, &is_undone, e);
    return r;
}

int postgres_schema_apply(const struct postgres_place *place, const struct postgres_schema *s, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();

    return postgres_schema_run(place, postgres_schema_sql(a, s), e);
}

/* ---- what is missing ---- */

struct probing {
    struct pg_link *link;
    const struct net_wait *wait;
    struct arena *arena;
    struct postgres_missings *missings;
};

static int take_answer(void *arg, const struct pg_row *row, struct err *e)
{
    struct slice text = SLICE_LIT("");
    int r = pg_row_is_null(row, 0) ? 0 : pg_row_text(row, 0, 1, &text, e);

    *(bool *)arg = slice_eq_str(text, "t");
    return r;
}

/* A refusal tells that something which the probe names is missing. */
static int probe(struct walk *w, struct postgres_table *t, const struct postgres_piece *piece, struct err *e)
{
    struct probing *p = w->arg;
    bool is_there = false;
    const struct pg_statement st = { .sql = postgres_sql_once(p->arena, t, piece->probe),
                                     .n_columns = 1,
                                     .max_rows = 1,
                                     .on_row = take_answer,
                                     .arg = &is_there };
    int r = pg_link_run(p->link, p->wait, &st, e);

    if (r < 0 && (pg_link_is_broken(p->link) || !pg_link_sqlstate(p->link)[0]))
        return r;
    if (!is_there && p->missings->n < LIMIT_LIST)
        p->missings->items[p->missings->n++] = (struct postgres_missing){ postgres_sql_once(p->arena, t, piece->what),
                                                                          postgres_sql_once(p->arena, t, piece->make) };
    return 0;
}

struct user_name {
    struct arena *arena;
    const char *name;
};

static int take_user(void *arg, const struct pg_row *row, struct err *e)
{
    struct user_name *user = arg;
    struct slice text = SLICE_LIT("");
    int r = pg_row_text(row, 0, LIMIT_TABLE_NAME_PART, &text, e);

    user->name = arena_slicedup(user->arena, text);
    return r;
}

static int read_user(const struct probing *p, const char **ret, struct err *e)
{
    struct user_name user = { .arena = p->arena };
    const struct pg_statement st = {
        .sql = "SELECT current_user", .n_columns = 1, .max_rows = 1, .on_row = take_user, .arg = &user
    };
    int r = pg_link_run(p->link, p->wait, &st, e);

    *ret = user.name;
    return r;
}

/* What the logical stream needs, and the rights of the role that asks, which need not be the owner: these are a
 * question where everything else is there. */
static int check_role(struct walk *w, const struct postgres_schema *s, const char *role, struct err *e)
{
    const struct probing *p = w->arg;
    int r = 0;

    w->tables = postgres_tables_new(s->abbr, role);
    if (s->events == POSTGRES_EVENTS_LOGICAL)
        r = each(w, postgres_table_activities(w->tables), postgres_logical_conditions, e);
    if (r == 0 && !s->role && p->missings->n == 0)
        r = walk_rights(w, s, e);
    postgres_tables_free(w->tables);
    return r;
}

static int check_all(struct walk *w, const struct postgres_schema *s, struct err *e)
{
    const char *user = NULL;
    int r = read_user(w->arg, &user, e);

    if (r < 0)
        return r;
    w->tables = postgres_tables_new(s->abbr, s->role);
    r = walk_all(w, s, e);
    postgres_tables_free(w->tables);
    return r < 0 ? r : check_role(w, s, s->role ? s->role : user, e);
}

int postgres_schema_check(const struct postgres_place *place, const struct postgres_schema *s, struct arena *a,
                          struct postgres_missings *ret, struct err *e)
{
    const struct net_wait wait = net_wait_of(LIMIT_BACKEND_SCRIPT_MS, NULL, NULL);
    struct postgres_missings missings = { .items = arena_array(a, LIMIT_LIST, sizeof(struct postgres_missing)) };
    struct probing p = { .wait = &wait, .arena = a, .missings = &missings };
    struct walk w = { .fn = probe, .arg = &p };
    int r = postgres_pool_connect(place, &wait, &p.link, e);

    if (r == 0)
        r = check_all(&w, s, e);
    pg_link_close(p.link);
    if (r == 0)
        *ret = missings;
    return r;
}
