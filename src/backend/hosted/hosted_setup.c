#include "backend/hosted/hosted_setup.h"
#include "backend/hosted/hosted_pieces.h"

#include "backend/hosted/account.h"
#include "backend/hosted/hosted_access.h"
#include "backend/postgres/postgres_declare_sql.h"
#include "backend/postgres/postgres_table.h"
#include "base/json_write.h"
#include "base/limits.h"

/* One request is one transaction, without BEGIN: a connection of the service must not be left within one. */
static const char step_begin[] = "SET LOCAL client_min_messages = warning;\n"
                                 "SET LOCAL search_path = pg_catalog, pg_temp;\n"
                                 "SET LOCAL lock_timeout = '30s';\n";

/* --- the steps --- */

enum { PIECES_MAX = 16 };

struct step {
    const char *what;
    struct postgres_table *table;
    const struct postgres_piece *pieces[PIECES_MAX];
    size_t n_pieces;
};

struct plan {
    struct arena *arena;
    struct postgres_tables *tables;
    struct step *steps;
    size_t n;
};

static void add_pieces(struct step *step, const struct postgres_piece *pieces)
{
    for (; pieces->what; pieces++)
        if (!pieces->is_of_service && step->n_pieces < PIECES_MAX)
            step->pieces[step->n_pieces++] = pieces;
}

/* what is a template. */
static struct step *add_step(struct plan *p, const char *what, struct postgres_table *t,
                             const struct postgres_piece *pieces)
{
    struct step *step = &p->steps[p->n++];

    *step = (struct step){ .what = postgres_sql_once(p->arena, t, what), .table = t };
    add_pieces(step, pieces);
    return step;
}

static void plan_table(struct plan *p, struct postgres_table *t)
{
    add_pieces(add_step(p, "table {table}", t, postgres_table_pieces), hosted_table_pieces);
}

static void plan_access(struct plan *p, struct postgres_table *t)
{
    add_step(p, "row-level security of {table}", t, hosted_access_pieces);
    add_step(p, "realtime of {table}", t, hosted_publication_pieces);
}

static void plan_begin(struct plan *p, const struct backend_place *place, size_t n_tables, struct arena *a)
{
    *p = (struct plan){ .arena = a,
                        .tables = postgres_tables_new(settings_string(place->settings, a, SETTING_IDENTITY_ABBR), NULL),
                        .steps = arena_array(a, 4 * n_tables + 16, sizeof(struct step)) };
}

static void plan_all(struct plan *p, const struct backend_setup *setup)
{
    struct postgres_table *any = postgres_table_activities(p->tables), *deletions = postgres_table_deletions(p->tables);
    size_t n = setup->n_tables;

    add_step(p, "list of tables", any, postgres_database_pieces);
    plan_table(p, any);
    for (size_t i = 0; i < n; i++)
        plan_table(p, postgres_table_of(p->tables, setup->tables[i]));
    plan_table(p, deletions);
    add_pieces(add_step(p, "functions", any, postgres_function_pieces), hosted_database_pieces);
    add_step(p, "triggers of {table}", any, postgres_listed_pieces);
    for (size_t i = 0; i < n; i++)
        add_step(p, "triggers of {table}", postgres_table_of(p->tables, setup->tables[i]), postgres_listed_pieces);
    plan_access(p, any);
    for (size_t i = 0; i < n; i++)
        plan_access(p, postgres_table_of(p->tables, setup->tables[i]));
    plan_access(p, deletions);
    add_pieces(add_step(p, "rights on the list of tables", any, hosted_list_access_pieces), hosted_reload_pieces);
}

static void put_step(struct buf *out, const struct step *step)
{
    for (size_t i = 0; i < step->n_pieces; i++)
        postgres_sql_put(out, step->table, step->pieces[i]->make);
}

char *hosted_setup_text(const struct backend_place *place, const struct backend_setup *setup, struct arena *a)
{
    struct plan p;
    struct buf out;

    plan_begin(&p, place, setup->n_tables, a);
    plan_all(&p, setup);
    buf_init(&out, LIMIT_REPLY);
    buf_printf(&out, "BEGIN;\n%s", step_begin);
    for (size_t i = 0; i < p.n; i++) {
        buf_printf(&out, "\n-- %s\n", p.steps[i].what);
        put_step(&out, &p.steps[i]);
    }
    buf_add_str(&out, "\nCOMMIT;\n");
    postgres_tables_free(p.tables);
    return buf_to_arena(&out, a);
}

/* --- requests --- */

struct project {
    struct account_api api;
    const char *path;
};

static int open_project(const struct backend_place *place, const struct net_wait *wait, struct arena *a,
                        struct project *ret, struct err *e)
{
    const char *ref = hosted_chosen_ref(place, a);

    if (!ref)
        return err_set(e, -EINVAL, "HOSTED_UNSET",
                       "No project of the hosted service is chosen: `hearth backend use PROJECT`; the SQL of `hearth "
                       "backend sql` may be run by hand");
    ret->path = arena_printf(a, "v1/projects/%s/database/query", ref);
    return account_api_open(place, wait, a, &ret->api, e);
}

static int run_sql(const struct project *project, const char *sql, struct slice *ret, struct err *e)
{
    struct json_writer w;
    struct buf body;
    int r;

    buf_init(&body, LIMIT_REPLY);
    json_write_init(&w, &body);
    json_begin_object(&w);
    json_add_string(&w, "query", sql);
    json_end(&w);
    r = buf_check(&body, e);
    if (r == 0)
        r = account_call(&project->api, project->path, buf_slice(&body), ret, e);
    buf_clear(&body);
    return r;
}

static int run_step(const struct project *project, const struct step *step, struct err *e)
{
    struct slice answer = { 0 };
    struct buf sql;
    int r;

    buf_init(&sql, LIMIT_REPLY);
    buf_add_str(&sql, step_begin);
    put_step(&sql, step);
    r = buf_check(&sql, e);
    if (r == 0)
        r = run_sql(project, buf_str(&sql), &answer, e);
    buf_clear(&sql);
    return r;
}

static int run_plan(const struct project *project, const struct plan *p, const struct backend_setup *setup,
                    struct err *e)
{
    for (size_t i = 0; i < p->n; i++) {
        int r;

        if (setup->on_step)
            setup->on_step(setup->arg, p->steps[i].what, i + 1, p->n);
        r = run_step(project, &p->steps[i], e);
        if (r < 0)
            return err_prefix(e, r, "Step %zu of %zu, %.200s", i + 1, p->n, p->steps[i].what);
    }
    return 0;
}

int hosted_setup_run(const struct backend_place *place, const struct backend_setup *setup, struct arena *a,
                     struct err *e)
{
    const struct net_wait wait = net_wait_of(LIMIT_HOSTED_SETUP_MS, setup->is_gone, setup->is_leaving);
    struct project project = { 0 };
    struct plan p;
    int r;

    if (setup->role)
        return err_set(e, -EINVAL, "VALIDATION_ERROR",
                       "The roles of the hosted service are known: --role is for PostgreSQL");
    r = open_project(place, &wait, a, &project, e);
    if (r < 0)
        return r;
    plan_begin(&p, place, setup->n_tables, a);
    plan_all(&p, setup);
    r = run_plan(&project, &p, setup, e);
    postgres_tables_free(p.tables);
    return r;
}

int hosted_setup_table(const struct backend_place *place, const char *table, const struct net_wait *wait, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const struct backend_setup nothing = { 0 };
    struct project project = { 0 };
    struct postgres_table *t;
    struct plan p;
    int r = open_project(place, wait, a, &project, e);

    if (r < 0)
        return r;
    plan_begin(&p, place, 1, a);
    t = postgres_table_of(p.tables, table);
    plan_table(&p, t);
    add_step(&p, "triggers of {table}", t, postgres_listed_pieces);
    plan_access(&p, t);
    add_step(&p, "reload", t, hosted_reload_pieces);
    r = run_plan(&project, &p, &nothing, e);
    postgres_tables_free(p.tables);
    return r;
}

/* --- tables with columns of their own --- */

static const char service_rights[] = "GRANT USAGE ON SCHEMA {table_schema} TO service_role;\n"
                                     "GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO service_role;\n";
static const char user_rights[] = "GRANT USAGE ON SCHEMA {table_schema} TO authenticated;\n"
                                  "GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO authenticated;\n";

/* Who may reach a table that was there before is its owner's matter. */
static void put_declaration(struct buf *out, const char *abbr, struct postgres_table *t,
                            const struct table_shape *declared, const struct table_shape *existing)
{
    static const struct postgres_piece *const rest[] = { hosted_list_access_pieces, hosted_publication_pieces,
                                                         hosted_reload_pieces };

    buf_add_str(out, step_begin);
    postgres_declare_put_table(out, declared, existing, "auth.uid()");
    if (!existing->n_columns) {
        postgres_sql_put(out, t, hosted_declared_rule(declared));
        postgres_sql_put(out, t, user_rights);
    }
    postgres_sql_put(out, t, service_rights);
    postgres_declare_put_list(out, abbr, declared->table);
    for (size_t i = 0; i < ARRAY_SIZE(rest); i++)
        for (const struct postgres_piece *piece = rest[i]; piece->what; piece++)
            postgres_sql_put(out, t, piece->make);
}

int hosted_setup_declare(const struct backend_place *place, const struct table_shape *declared,
                         const struct table_shape *existing, const struct net_wait *wait, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *abbr = settings_string(place->settings, a, SETTING_IDENTITY_ABBR);
    struct project project = { 0 };
    struct postgres_tables *tables;
    struct slice answer = { 0 };
    struct buf sql;
    int r = open_project(place, wait, a, &project, e);

    if (r < 0)
        return r;
    tables = postgres_tables_new(abbr, NULL);
    buf_init(&sql, LIMIT_REPLY);
    put_declaration(&sql, abbr, postgres_table_of(tables, declared->table), declared, existing);
    r = buf_check(&sql, e);
    if (r == 0)
        r = run_sql(&project, buf_str(&sql), &answer, e);
    buf_clear(&sql);
    postgres_tables_free(tables);
    return r;
}

/* --- what is missing --- */

static void put_probe(struct buf *out, const struct step *step, size_t i)
{
    buf_add_char(out, '(');
    postgres_sql_put(out, step->table, step->pieces[i]->probe);
    buf_add_char(out, ')');
}

/* The answers of n probes from the first on, as one list. -EREMOTEIO: one of them could not be run. */
static int probe(const struct project *project, const struct step *step, size_t first, size_t n, bool *found,
                 struct err *e)
{
    struct json_value rows = { 0 }, row = { 0 }, one = { 0 };
    struct slice answer = { 0 };
    struct buf sql;
    int r;

    buf_init(&sql, LIMIT_REPLY);
    buf_add_str(&sql, "SELECT jsonb_build_array(");
    for (size_t i = 0; i < n; i++) {
        buf_add_str(&sql, i ? ", " : "");
        put_probe(&sql, step, first + i);
    }
    buf_add_str(&sql, ") AS found");
    r = run_sql(project, buf_str(&sql), &answer, e);
    buf_clear(&sql);
    if (r == 0)
        r = account_rows_read(project->api.arena, answer, &rows, e);
    for (struct json_iter it = json_iter(rows); r == 0 && json_next(&it, NULL, &row);)
        for (struct json_iter list = json_iter(json_get(row, "found")); n > 0 && json_next(&list, NULL, &one); n--)
            *found++ = json_bool(one);
    return r;
}

/* A probe that is refused tells that something which it names is missing. */
static int probe_step(const struct project *project, const struct step *step, bool found[PIECES_MAX], struct err *e)
{
    struct err why = { 0 };
    int r = probe(project, step, 0, step->n_pieces, found, &why);

    for (size_t i = 0; r == -EREMOTEIO && i < step->n_pieces; i++) {
        found[i] = false;
        err_init(&why);
        r = probe(project, step, i, 1, &found[i], &why);
        r = r == 0 ? -EREMOTEIO : r;
    }
    if (r == 0 || r == -EREMOTEIO)
        return 0;
    if (e)
        *e = why;
    return r;
}

static void add_lacks(struct backend_lacks *lacks, const struct step *step, const bool found[PIECES_MAX],
                      struct arena *a)
{
    for (size_t i = 0; i < step->n_pieces; i++)
        if (!found[i] && lacks->n < LIMIT_LIST)
            lacks->items[lacks->n++] =
                (struct backend_lack){ postgres_sql_once(a, step->table, step->pieces[i]->what),
                                       postgres_sql_once(a, step->table, step->pieces[i]->make) };
}

int hosted_setup_lacks(const struct backend_place *place, const struct backend_setup *setup, struct arena *a,
                       struct backend_lacks *ret, struct err *e)
{
    const struct net_wait wait = net_wait_of(LIMIT_HOSTED_SETUP_MS, setup->is_gone, setup->is_leaving);
    struct project project = { 0 };
    struct plan p;
    int r = open_project(place, &wait, a, &project, e);

    if (r < 0)
        return r;
    *ret = (struct backend_lacks){ arena_array(a, LIMIT_LIST, sizeof(struct backend_lack)), 0 };
    plan_begin(&p, place, setup->n_tables, a);
    plan_all(&p, setup);
    for (size_t i = 0; r == 0 && i < p.n; i++) {
        bool found[PIECES_MAX] = { false };

        r = probe_step(&project, &p.steps[i], found, e);
        if (r == 0)
            add_lacks(ret, &p.steps[i], found, a);
    }
    postgres_tables_free(p.tables);
    return r;
}

const struct backend_provider hosted_setup_provider = {
    .name = "hosted",
    .where = SETTING_BACKEND_PROJECT,
    .setup_text = hosted_setup_text,
    .setup = hosted_setup_run,
    .lacks = hosted_setup_lacks,
};
