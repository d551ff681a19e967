/* The set-up of a database: rights, repetition, what is missing, functions for other programs. */
#include "rig_postgres.h"

#include "backend/postgres/postgres_outbox_schema.h"
#include "base/limits.h"

static struct json_value call(struct rig *rig, const char *sql)
{
    return rig_json(rig, rig_value(rig, sql));
}

static void assert_reason(struct json_value answer, const char *reason)
{
    assert_false(json_bool(json_get(answer, "success")));
    assert_string_equal(json_cstr(json_get(answer, "reason")), reason);
}

#define ID "6f9619ff-8b86-4d01-b42d-00c04fc964ff"

static void the_functions_work_from_psql_as_the_contract_says(void **state)
{
    struct rig *rig = *state;
    struct json_value v;

    rig_sql(rig, "INSERT INTO svc_activities (id, raw_data) VALUES ('" ID "', '{\"n\":1}')");
    v = call(rig, "SELECT svc_fn_claim_task('" ID "', 'lin-a')");
    assert_true(json_bool(json_get(v, "success")));
    assert_int_equal(json_int(json_get(v, "attempt")), 1);
    assert_string_equal(rig_get(rig, ID).locked_by, "lin-a");
    v = call(rig, "SELECT svc_fn_claim_task(target_task_id => '" ID "', machine_id => 'lin-b')");
    assert_reason(v, "already_locked");
    assert_string_equal(json_cstr(json_get(v, "locked_by")), "lin-a");
    assert_reason(call(rig, "SELECT svc_fn_complete_task('" ID "', 'lin-b', '{}')"), "lease_lost");
    assert_reason(call(rig, "SELECT svc_fn_complete_task('" ID "', 'lin-a', '{}', attempt => 2)"), "lease_lost");
    v = call(rig, "SELECT svc_fn_fail_task('" ID "', 'lin-a', error_msg => 'out of paper', attempt => 1)");
    assert_string_equal(json_cstr(json_get(v, "status")), "failed");
    v = call(rig, "SELECT svc_fn_fail_task('" ID "', 'lin-a', 'again')"); /* a repeat */
    assert_true(json_bool(json_get(v, "success")));
    assert_string_equal(rig_get(rig, ID).error_message, "out of paper");
    assert_int_equal(rig_get(rig, ID).retry_count, 1);
    assert_reason(call(rig, "SELECT svc_fn_claim_task('" ID "', 'lin-a')"), "already_attempted");
    call(rig, "SELECT svc_fn_claim_task('" ID "', 'lin-b', 'public.svc_activities')");
    v = call(rig, "SELECT svc_fn_complete_task('" ID "', 'lin-b', result_data => '[1]')");
    assert_true(json_bool(json_get(v, "success")));
    assert_string_equal(rig_get(rig, ID).result, "[1]");
    assert_reason(call(rig, "SELECT svc_fn_claim_task('" ID "', 'lin-b')"), "not_claimable");
    assert_reason(call(rig, "SELECT svc_fn_claim_task('" ID "', 'lin-b', 'nowhere')"), "unknown_table");
    assert_reason(call(rig, "SELECT svc_fn_claim_task(gen_random_uuid(), 'lin-b')"), "not_found");
}

static void three_failures_quarantine_for_the_functions_too(void **state)
{
    struct rig *rig = *state;

    rig_sql(rig, "INSERT INTO svc_activities (id, raw_data, attempted_by) VALUES ('" ID "', '{}', '{a,b,c}')");
    assert_reason(call(rig, "SELECT svc_fn_claim_task('" ID "', 'lin-d')"), "quarantined");
}

static void get_publications_full_names_the_parents_of_partitions(void **state)
{
    struct rig *rig = *state;
    struct json_value v, item = { 0 };

    assert_int_equal(json_type(call(rig, "SELECT get_publications_full()")), JSON_ARRAY);
    rig_sql(rig, "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id);"
                 "CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (1) TO (5);"
                 "CREATE PUBLICATION \"a first\" FOR TABLE parts WITH (publish = 'insert')");
    v = call(rig, "SELECT get_publications_full()");
    for (struct json_iter it = json_iter(v); json_next(&it, NULL, &item);)
        break;
    assert_string_equal(json_cstr(json_get(item, "pubname")), "a first");
    assert_true(json_bool(json_get(item, "pubinsert")));
    assert_false(json_bool(json_get(item, "pubupdate")));
    assert_int_equal(json_length(json_get(item, "tables")), 1);
    assert_non_null(strstr(json_to_str(rig->arena, item), "\"table\":\"parts\""));
}

/* --- set-up and check --- */

static struct postgres_missings missing_as(struct rig *rig, const char *url, const struct postgres_schema *s)
{
    const struct postgres_place place = { .url = url };
    struct postgres_missings found = { 0 };
    struct err e = { 0 };

    must(postgres_schema_check(&place, s, rig->arena, &found, &e), &e);
    return found;
}

static struct postgres_missings missing(struct rig *rig, const struct postgres_schema *s)
{
    return missing_as(rig, rig_place(rig)->url, s);
}

static int apply(struct rig *rig, const char *url, const struct postgres_schema *s, struct err *e)
{
    *e = (struct err){ 0 };
    return postgres_schema_apply(&(struct postgres_place){ .url = url }, s, e);
}

static void each_missing_piece_is_named_with_the_sql_that_makes_it(void **state)
{
    struct rig *rig = *state;
    const struct postgres_schema s = { .abbr = "svc" };
    struct postgres_missings found;

    assert_int_equal(missing(rig, &s).n, 0);
    rig_sql(rig, "DROP TRIGGER hearth_1_deleted ON svc_activities; DROP FUNCTION get_publications_full();"
                 "ALTER TABLE svc_activities DROP COLUMN deleted_id; DROP TABLE svc_presence");
    found = missing(rig, &s);
    assert_int_equal(found.n, 4);
    for (size_t i = 0; i < found.n; i++)
        rig_sql(rig, found.items[i].sql);
    assert_int_equal(missing(rig, &s).n, 0);
    rig_sql(rig, "CREATE OR REPLACE FUNCTION svc_outbox_updated() RETURNS trigger LANGUAGE plpgsql AS"
                 " $$ BEGIN RETURN NULL; END $$"); /* as an older set-up left it */
    found = missing(rig, &s);
    assert_int_equal(found.n, 1);
    rig_sql(rig, found.items[0].sql);
    assert_int_equal(missing(rig, &s).n, 0);
    rig_sql(rig, "DROP TABLE svc_schema");
    assert_true(missing(rig, &s).n > 0);
}

#define WITHOUT_SIZES(table) "DROP TRIGGER hearth_0_sizes ON " table "; DROP TRIGGER hearth_0_sizes_end ON " table ";"

/* Schema 2: texts in the outbox, and a check that a server reads anew for each statement. */
static void a_database_of_schema_2_is_named_and_brought_up_to_date(void **state)
{
    struct rig *rig = *state;
    const struct postgres_schema s = { .abbr = "svc" };
    struct postgres_missings found;
    struct err e;

    rig_sql(
        rig,
        "ALTER TABLE svc_outbox DROP COLUMN old, DROP COLUMN new, DROP COLUMN work, DROP COLUMN old_rest,"
        " DROP COLUMN new_rest, DROP COLUMN work_rest;"
        "ALTER TABLE svc_outbox ADD COLUMN old text[], ADD COLUMN new text[], ADD COLUMN work text[];" WITHOUT_SIZES(
            "svc_activities")
            WITHOUT_SIZES(
                "svc_deletions") "DROP FUNCTION svc_fn_fit();"
                                 "ALTER TABLE svc_activities ADD CONSTRAINT hearth_sizes CHECK (jsonb_typeof(raw_data) = 'object');"
                                 "INSERT INTO svc_outbox (name, op, new) VALUES ('svc_activities', 1, '{a}');"
                                 "UPDATE svc_schema SET version = 2");
    found = missing(rig, &s);
    assert_int_equal(found.n, 5); /* the function, the outbox, the triggers of two tables, the version */
    assert_non_null(strstr(found.items[0].what, "svc_fn_fit"));
    must(apply(rig, rig_place(rig)->url, &s, &e), &e);
    assert_int_equal(missing(rig, &s).n, 0);
    assert_string_equal(rig_value(rig, "SELECT count(*) FROM svc_outbox"), "0");
    assert_string_equal(rig_value(rig, "SELECT pruned IS NOT NULL FROM svc_outbox_mark"), "t");
}

static void make_schema_4(struct rig *rig)
{
    rig_sql(rig, "CREATE OR REPLACE FUNCTION svc_outbox_updated() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
                 " SET search_path = pg_catalog, pg_temp AS"
                 " $$ BEGIN INSERT INTO svc_outbox (name, op, new_rest) VALUES ('', 0, NULL); RETURN NULL; END $$;"
                 "CREATE FUNCTION svc_fn_fits(jsonb, jsonb, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';");
    rig_sql(rig, WITHOUT_SIZES("svc_activities") WITHOUT_SIZES("svc_deletions") //
            "DROP FUNCTION svc_fn_fit(), svc_fn_fit_end();"
            "ALTER TABLE svc_activities ADD CONSTRAINT hearth_sizes"
            "  CHECK (svc_fn_fits(raw_data, result, error_message));"
            "ALTER TABLE svc_deletions ADD CONSTRAINT hearth_sizes"
            "  CHECK (svc_fn_fits(raw_data, result, error_message));"
            "UPDATE svc_schema SET version = 4");
}

/* Schema 4: the limits are a check, and the trigger of changes has its search_path as an option. */
static void a_database_of_schema_4_is_named_and_brought_up_to_date(void **state)
{
    struct rig *rig = *state;
    const struct postgres_schema s = { .abbr = "svc" };
    struct postgres_missings found;
    struct err e;

    make_schema_4(rig);
    found = missing(rig, &s);
    assert_int_equal(found.n, 6); /* two functions, the outbox, the triggers of two tables, the version */
    assert_non_null(strstr(found.items[2].sql, POSTGRES_SAYS_LEASES));
    must(apply(rig, rig_place(rig)->url, &s, &e), &e);
    assert_int_equal(missing(rig, &s).n, 0);
    assert_string_equal(rig_value(rig, "SELECT version FROM svc_schema"), "5");
    assert_string_equal(rig_value(rig, "SELECT count(*) FROM pg_proc WHERE proname = 'svc_fn_fits'"), "0");
    assert_null(rig_value(rig, "SELECT proconfig FROM pg_proc WHERE proname = 'svc_outbox_updated'"));
}

/* A table that this set-up does not name keeps its check, which needs the function. */
static void a_check_of_schema_4_stays_on_a_table_that_the_set_up_does_not_name(void **state)
{
    struct rig *rig = *state;
    const struct postgres_schema s = { .abbr = "svc" };
    struct err e;

    make_schema_4(rig);
    rig_sql(rig, "CREATE TABLE other (raw_data jsonb CHECK (svc_fn_fits(raw_data, NULL, NULL)))");
    must(apply(rig, rig_place(rig)->url, &s, &e), &e);
    assert_int_equal(missing(rig, &s).n, 0);
    rig_sql(rig, "INSERT INTO other VALUES ('{}')");
}

/* Operators and types of a schema that the writer has made cannot stand for those of the check. */
static void the_limits_of_a_row_hold_whatever_the_writer_has_in_his_search_path(void **state)
{
    struct rig *rig = *state;
    PGconn *conn = PQconnectdb(rig_place(rig)->url);
    PGresult *result;

    rig_sql(rig, "CREATE SCHEMA evil; CREATE FUNCTION evil.yes(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT true';"
                 "CREATE FUNCTION evil.same(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';"
                 "CREATE OPERATOR evil.<= (LEFTARG = int, RIGHTARG = int, FUNCTION = evil.yes);"
                 "CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.same);"
                 "CREATE FUNCTION evil.octet_length(text) RETURNS int LANGUAGE sql AS 'SELECT 1';"
                 "CREATE FUNCTION evil.jsonb_typeof(jsonb) RETURNS text LANGUAGE sql AS $$ SELECT 'object' $$");
    PQclear(PQexec(conn, "SET search_path = evil, pg_catalog, public"));
    result = PQexec(conn, "INSERT INTO public.svc_activities (raw_data) VALUES ('[1]')");
    assert_string_equal(PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME), "hearth_sizes");
    PQclear(result);
    result = PQexec(conn, "INSERT INTO public.svc_activities (raw_data)"
                          " VALUES (jsonb_build_object('x', repeat('y', 9000000)))");
    assert_string_equal(PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME), "hearth_sizes");
    PQclear(result);
    PQfinish(conn);
    assert_string_equal(rig_value(rig, "SELECT count(*) FROM svc_activities"), "0");
}

/* False: refused by the check of the row's limits. */
static bool set_repeated(struct rig *rig, const char *change, const char *text, int n, const char *end)
{
    PGconn *conn = PQconnectdb(rig_place(rig)->url);
    PGresult *result = PQexec(conn, arena_printf(rig->arena, "%s repeat('%s', %d)%s", change, text, n, end));
    const char *constraint = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
    bool is_done = PQresultStatus(result) == PGRES_COMMAND_OK;

    if (!is_done)
        assert_string_equal(constraint ? constraint : PQresultErrorMessage(result), "hearth_sizes");
    PQclear(result);
    PQfinish(conn);
    return is_done;
}

static void the_values_of_a_row_may_fill_their_limits_and_no_more(void **state)
{
    enum { JSON = LIMIT_BACKEND_JSON_BYTES - (int)sizeof("{\"x\": \"\"}") + 1 };
    static const struct {
        const char *change, *text, *end;
        int most;
    } cases[] = {
        { "INSERT INTO svc_activities (raw_data) SELECT jsonb_build_object('x',", "y", ")", JSON },
        { "UPDATE svc_activities SET raw_data = jsonb_build_object('x',", "z", ")", JSON },
        { "UPDATE svc_activities SET result = jsonb_build_object('x',", "y", ")", JSON },
        { "UPDATE svc_activities SET error_message =", "\xc3\xa4", "", LIMIT_STRING_DEFAULT },
    };
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_true(set_repeated(rig, cases[i].change, cases[i].text, cases[i].most, cases[i].end));
        assert_false(set_repeated(rig, cases[i].change, cases[i].text, cases[i].most + 1, cases[i].end));
    }
}

static void the_set_up_may_be_repeated_and_mends_a_table_of_the_specification_s_columns(void **state)
{
    static const char *const tables[] = { "shop.orders" };
    const struct postgres_schema s = { .abbr = "svc", .tables = tables, .n_tables = 1 };
    struct rig *rig = *state;
    struct backend_rows rows = { 0 };
    const struct backend_query q = { .table = "shop.orders" };
    struct err e;

    rig_sql(rig, "CREATE SCHEMA shop; CREATE TABLE shop.orders (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),"
                 " user_id uuid, raw_data jsonb, old_data jsonb, status text, locked_by text, locked_at timestamp,"
                 " completed_at timestamptz, error_message text, attempted_by text[], retry_count int, result jsonb,"
                 " created_at timestamptz DEFAULT now()); INSERT INTO shop.orders (raw_data) VALUES ('{\"n\":7}')");
    must(apply(rig, rig_place(rig)->url, &s, &e), &e);
    must(apply(rig, rig_place(rig)->url, &s, &e), &e);
    assert_int_equal(missing(rig, &s).n, 0);
    must(backend_list(rig->backend, &q, rig->arena, &rows, &e), &e);
    assert_int_equal(rows.n, 1);
    assert_string_equal(rows.items[0].status, "pending");
    assert_string_equal(rows.items[0].raw_data, "{\"n\":7}");
}

struct set_up {
    const char *url;
    struct err e;
    int r;
};

static void *run_set_up(void *arg)
{
    struct set_up *s = arg;

    s->r = postgres_schema_apply(&(struct postgres_place){ .url = s->url }, &(struct postgres_schema){ .abbr = "svc" },
                                 &s->e);
    return NULL;
}

static bool is_set_up_waiting(void *arg)
{
    return strcmp(rig_value(arg, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted"), "t") == 0;
}

static void run_on(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%.300s: %s", sql, PQerrorMessage(conn));
    PQclear(result);
}

/* The other session looks for deadlocks later than the set-up does, which is therefore the one that is ended. */
static void a_set_up_that_a_deadlock_ended_is_run_again(void **state)
{
    struct rig *rig = *state;
    struct set_up set_up = { .url = rig_place(rig)->url };
    PGconn *conn = PQconnectdb(rig_place(rig)->url);
    pthread_t thread;

    run_on(conn, "SET deadlock_timeout = '10min'");
    run_on(conn, "BEGIN");
    run_on(conn, "LOCK TABLE svc_deletions IN ACCESS EXCLUSIVE MODE");
    assert_int_equal(pthread_create(&thread, NULL, run_set_up, &set_up), 0);
    assert_true(wait_until(is_set_up_waiting, rig));
    run_on(conn, "LOCK TABLE svc_activities IN ACCESS EXCLUSIVE MODE");
    run_on(conn, "COMMIT");
    pthread_join(thread, NULL);
    PQfinish(conn);
    must(set_up.r, &set_up.e);
}

static void a_database_without_or_with_another_schema_is_refused_in_words(void **state)
{
    struct rig *rig = *state;
    const struct backend_postgres_config config = { .url = rig_place(rig)->url, .abbr = "svc" };
    struct backend *b = NULL;
    struct err e = { 0 };

    rig_sql(rig, "UPDATE svc_schema SET version = 99");
    assert_int_equal(backend_postgres_open(&config, &b, &e), -EPROTONOSUPPORT);
    assert_string_equal(e.code, "SCHEMA_TOO_NEW");
    rig_sql(rig, "UPDATE svc_schema SET version = 0");
    assert_int_equal(backend_postgres_open(&config, &b, &e), -ENOENT);
    assert_string_equal(e.code, "SCHEMA_MISSING");
    rig_sql(rig, "DROP TABLE svc_schema");
    assert_int_equal(backend_postgres_open(&config, &b, &e), -ENOENT);
    assert_non_null(strstr(e.text, "hearth backend setup"));
}

/* --- rights --- */

static void make_role(struct rig *rig, const char *role)
{
    rig_sql(rig,
            arena_printf(rig->arena,
                         "DO $$ BEGIN CREATE ROLE %s LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$", role));
}

static void a_role_works_with_exactly_the_rights_of_the_set_up(void **state)
{
    const struct postgres_schema s = { .abbr = "svc", .role = "worker" };
    struct rig *rig = *state;
    const char *id = rig_insert(rig), *other = rig_insert(rig);
    struct backend *owner = rig->backend;
    struct backend_lease lease;
    struct backend_owners owners;
    const struct backend_presence me = { .machine_id = "lin-a" };
    struct err e;

    make_role(rig, "worker");
    assert_true(missing(rig, &s).n > 0);
    must(apply(rig, rig_place(rig)->url, &s, &e), &e);
    assert_int_equal(missing(rig, &s).n, 0);
    rig->backend = rig_open_url(rig_url_as(rig, "worker"), 0);
    lease = rig_claim(rig, id, "lin-a");
    must(backend_complete(rig->backend, &lease, "{}", &e), &e);
    lease = rig_claim(rig, other, "lin-a");
    must(backend_fail(rig->backend, &lease, "no", &e), &e);
    must(OPS(rig)->presence_put(rig->backend, &me, 1000, &e), &e);
    must(OPS(rig)->owners(rig->backend, 3, rig->arena, &owners, &e), &e);
    rig_remove(rig, other);
    rig_insert(rig);
    assert_int_equal(OPS(rig)->ensure_table(rig->backend, "orders", &e), -EACCES);
    assert_string_equal(e.code, "STORE_DENIED");
    backend_close(rig->backend);
    rig->backend = owner;
}

static struct table_column page_columns[] = { { .name = "id", .type = TABLE_INT4, .is_key = true },
                                              { .name = "text", .type = TABLE_TEXT, .is_nullable = true } };
static const struct table_shape pages = { .table = "books.pages", .columns = page_columns, .n_columns = 2 };

static void a_role_uses_the_tables_that_the_owner_has_declared(void **state)
{
    const struct postgres_schema s = { .abbr = "svc", .role = "reader" }, own = { .abbr = "svc" };
    const struct query q = { .kind = QUERY_SELECT, .table = "books.pages", .limit = -1 };
    struct rig *rig = *state;
    struct backend_publications published = { 0 };
    struct backend *owner = rig->backend;
    const char *url = rig_url_as(rig, "reader");
    struct postgres_missings found;
    struct query_reply reply = { 0 };
    struct table_shape shape = { 0 };
    struct err e = { 0 };

    make_role(rig, "reader");
    must(apply(rig, rig_place(rig)->url, &s, &e), &e);
    must(backend_declare(rig->backend, &pages, &e), &e);
    assert_int_equal(missing(rig, &own).n, 0);
    found = missing_as(rig, url, &own);
    assert_int_equal(found.n, 1);
    assert_string_equal(found.items[0].what, "rights of \"reader\" on the declared tables");
    rig_sql(rig, found.items[0].sql);
    assert_int_equal(missing_as(rig, url, &own).n, 0);
    rig_sql(rig, "DROP TABLE books.pages");
    assert_int_equal(missing_as(rig, url, &own).n, 0);
    must(backend_declare(rig->backend, &pages, &e), &e);
    must(apply(rig, rig_place(rig)->url, &s, &e), &e);
    rig->backend = rig_open_url(url, 0);
    must(backend_declare(rig->backend, &pages, &e), &e); /* nothing is to be made */
    must(backend_query(rig->backend, &q, rig->arena, &reply, &e), &e);
    assert_int_equal(backend_shape(rig->backend, "nothing", rig->arena, &shape, &e), -ENOENT);
    must(OPS(rig)->publications(rig->backend, rig->arena, &published, &e), &e);
    backend_close(rig->backend);
    rig->backend = owner;
}

static void a_role_without_rights_is_told_so(void **state)
{
    struct rig *rig = *state;
    const struct backend_postgres_config config = { .url = rig_url_as(rig, "stranger"), .abbr = "svc" };
    struct backend *b = NULL;
    struct err e = { 0 };

    make_role(rig, "stranger");
    assert_int_equal(backend_postgres_open(&config, &b, &e), -EACCES);
    assert_string_equal(e.code, "STORE_DENIED");
    assert_int_equal(apply(rig, config.url, &(struct postgres_schema){ .abbr = "svc" }, &e), -EACCES);
}

static void the_sql_for_a_missing_right_of_replication_names_the_role(void **state)
{
    const struct postgres_schema s = { .abbr = "svc", .events = POSTGRES_EVENTS_LOGICAL };
    struct rig *rig = *state;
    const char *url = rig_url_as(rig, "listener");
    struct postgres_missings found;
    struct postgres_missing last;

    make_role(rig, "listener");
    found = missing_as(rig, url, &s);
    assert_true(found.n > 0);
    last = found.items[found.n - 1];
    assert_non_null(strstr(last.sql, "ALTER ROLE \"listener\" REPLICATION;"));
    rig_sql(rig, last.sql);
    found = missing_as(rig, url, &s);
    assert_true(found.n == 0 || strcmp(found.items[found.n - 1].what, last.what) != 0);
}

/* The program of another role may change its rows only; the work that a deletion leaves is the service's. */
static void a_program_with_rights_on_its_table_alone_deletes_rows(void **state)
{
    struct rig *rig = *state;
    const char *id = rig_insert(rig);

    make_role(rig, "writer");
    rig_sql(rig, "GRANT SELECT, INSERT, UPDATE, DELETE ON svc_activities TO writer");
    cluster_exec(rig_url_as(rig, "writer"),
                 arena_printf(rig->arena,
                              "UPDATE svc_activities SET raw_data = '{\"n\":2}' WHERE id = '%s';"
                              "DELETE FROM svc_activities WHERE id = '%s'",
                              id, id));
    assert_int_equal(rig_list(rig, (struct backend_query){ .table = DELETIONS }).n, 1);
    assert_string_equal(rig_value(rig, "SELECT deleted_id FROM svc_deletions"), id);
}

/* The program that writes to its table is never aborted by the service's own tables and triggers. */
static void a_deletion_succeeds_without_a_place_for_its_work(void **state)
{
    struct rig *rig = *state;

    rig_insert(rig);
    rig_sql(rig, "DROP TABLE svc_deletions; DELETE FROM svc_activities");
    assert_string_equal(rig_value(rig, "SELECT count(*) FROM svc_activities"), "0");
}

static void an_oversized_old_row_is_deleted_and_the_work_of_the_others_is_kept(void **state)
{
    struct rig *rig = *state;

    rig_insert(rig);
    rig_sql(rig, WITHOUT_SIZES("svc_activities") //
            "INSERT INTO svc_activities (raw_data) VALUES (jsonb_build_object('x', repeat('y', 9000000)))");
    rig_insert(rig);
    rig_sql(rig, "DELETE FROM svc_activities");
    assert_string_equal(rig_value(rig, "SELECT count(*) FROM svc_activities"), "0");
    assert_string_equal(rig_value(rig, "SELECT count(*) FROM svc_deletions"), "2");
}

static void a_change_succeeds_without_the_column_of_old_data(void **state)
{
    struct rig *rig = *state;

    rig_insert(rig);
    rig_sql(rig, "ALTER TABLE svc_activities DROP COLUMN old_data; UPDATE svc_activities SET raw_data = '{\"n\":9}'");
    assert_string_equal(rig_value(rig, "SELECT raw_data ->> 'n' FROM svc_activities"), "9");
}

/* --- names --- */

static void every_name_that_is_allowed_is_quoted(void **state)
{
    static const char *const names[] = {
        "Order",
        "select",
        "a1234567890123456789012345678901234567890123456789012345678901_",
        "User.Table",
        "a123456789012345678901234567890123456789012345678901234567890_b.b_a12345678901234567890",
        "order.a1234567890123456789012345678901234567890123456789012345678901_",
    };
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct backend_new_row in = { .table = names[i], .raw_data = "{}" };
        struct backend_claim claim = { names[i], NULL, "lin-a", STALE_MS, 3 };
        struct backend_lease lease;
        struct backend_row row;
        struct err e = { 0 };

        must(OPS(rig)->ensure_table(rig->backend, names[i], &e), &e);
        must(backend_insert(rig->backend, &in, rig->arena, &row, &e), &e);
        claim.row_id = row.id;
        must(backend_claim(rig->backend, &claim, rig->arena, &row, &lease, &e), &e);
        must(backend_complete(rig->backend, &lease, "{}", &e), &e);
        must(OPS(rig)->remove(rig->backend, names[i], row.id, NULL, &e), &e);
        assert_string_equal(rig_list(rig, (struct backend_query){ .table = DELETIONS }).items[0].source_table,
                            names[i]);
    }
}

/* A role without rights, and names that would end quotes, dollar quotes and comments. */
static void quoted_names_are_set_up_checked_granted_and_called_from_sql(void **state)
{
    static const char *const tables[] = { "\"$do$ it's\".\"$fn$ \"\"--\"", "sales.\"a.b\"", "\"two\nlines\"" };
    static const char *const quoted[] = { "\"$do$ it''s\".\"$fn$ \"\"--\"", "\"sales\".\"a.b\"",
                                          "public.\"two\nlines\"" };
    const struct postgres_schema s = { .abbr = "svc", .tables = tables, .n_tables = 3, .role = "a \"role\"" };
    struct rig *rig = *state;
    struct err e = { 0 };

    rig_sql(rig, "CREATE ROLE \"a \"\"role\"\"\" LOGIN");
    assert_true(missing(rig, &s).n > 0);
    must(apply(rig, rig_place(rig)->url, &s, &e), &e);
    must(apply(rig, rig_place(rig)->url, &s, &e), &e);
    assert_int_equal(missing(rig, &s).n, 0);
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        struct backend_new_row in = { .table = tables[i], .id = ID, .raw_data = "{}" };
        struct backend_row row;

        must(backend_insert(rig->backend, &in, rig->arena, &row, &e), &e);
        assert_true(json_bool(
            json_get(call(rig, arena_printf(rig->arena, "SELECT svc_fn_claim_task('" ID "', 'm', '%s')", quoted[i])),
                     "success")));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        POSTGRES_TEST(the_functions_work_from_psql_as_the_contract_says),
        POSTGRES_TEST(three_failures_quarantine_for_the_functions_too),
        POSTGRES_TEST(get_publications_full_names_the_parents_of_partitions),
        POSTGRES_TEST(each_missing_piece_is_named_with_the_sql_that_makes_it),
        POSTGRES_TEST(a_database_of_schema_2_is_named_and_brought_up_to_date),
        POSTGRES_TEST(a_database_of_schema_4_is_named_and_brought_up_to_date),
        POSTGRES_TEST(a_check_of_schema_4_stays_on_a_table_that_the_set_up_does_not_name),
        POSTGRES_TEST(the_limits_of_a_row_hold_whatever_the_writer_has_in_his_search_path),
        POSTGRES_TEST(the_values_of_a_row_may_fill_their_limits_and_no_more),
        POSTGRES_TEST(the_set_up_may_be_repeated_and_mends_a_table_of_the_specification_s_columns),
        POSTGRES_TEST(a_set_up_that_a_deadlock_ended_is_run_again),
        POSTGRES_TEST(a_database_without_or_with_another_schema_is_refused_in_words),
        POSTGRES_TEST(a_role_works_with_exactly_the_rights_of_the_set_up),
        POSTGRES_TEST(a_role_uses_the_tables_that_the_owner_has_declared),
        POSTGRES_TEST(a_role_without_rights_is_told_so),
        POSTGRES_TEST(the_sql_for_a_missing_right_of_replication_names_the_role),
        POSTGRES_TEST(a_program_with_rights_on_its_table_alone_deletes_rows),
        POSTGRES_TEST(a_deletion_succeeds_without_a_place_for_its_work),
        POSTGRES_TEST(an_oversized_old_row_is_deleted_and_the_work_of_the_others_is_kept),
        POSTGRES_TEST(a_change_succeeds_without_the_column_of_old_data),
        POSTGRES_TEST(every_name_that_is_allowed_is_quoted),
        POSTGRES_TEST(quoted_names_are_set_up_checked_granted_and_called_from_sql),
    };

    return postgres_run_tests(tests, ARRAY_SIZE(tests));
}
