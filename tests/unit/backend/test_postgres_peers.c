/* psql writes, and pg_recvlogical with wal2json reads the same changes from the server's log: programs that know
 * nothing of this one. */
#include "events_rig.h"
#include "fixture_postgres.h"

#include "../skip.h"
#include "backend/query.h"
#include "base/json_write.h"

#include <spawn.h>
#include <stdarg.h>

extern char **environ;

enum { ARGS = 20, CHANGES = 64 };

static int run_program(const char *program, const char *const *args)
{
    char path[300];
    char *argv[ARGS] = { path };
    int status = -1;
    pid_t pid;

    snprintf(path, sizeof(path), "%s/%s", cluster_programs(), program);
    for (size_t i = 0; args[i]; i++)
        argv[i + 1] = (char *)(uintptr_t)args[i];
    assert_int_equal(posix_spawn(&pid, path, NULL, NULL, argv, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool has_wal2json(void)
{
    glob_t found;
    bool is_so = glob("/usr/lib/postgresql/*/lib/wal2json.so", 0, NULL, &found) == 0;

    if (is_so)
        globfree(&found);
    return is_so;
}

static void psql(struct events_rig *rig, const char *text)
{
    assert_int_equal(run_program("psql", (const char *const[]){ "-qX", "-o", "/dev/null", "-v", "ON_ERROR_STOP=1", "-d",
                                                                rig->place->url, "-c", text, NULL }),
                     0);
}

struct change {
    char action, id[40];
    char values[200]; /* as JSON: the columns in their order, without their types */
};

/* {"columns": [{"name": "id", "type": "uuid", "value": "..."}]} */
static void take_change(struct arena *a, struct json_value v, struct change *ret)
{
    struct json_value item;
    struct json_writer w;
    struct json_iter it;
    struct buf out;

    ret->action = json_string(json_get(v, "action")).p[0];
    it = json_iter(json_get(v, ret->action == 'D' ? "identity" : "columns"));
    buf_init(&out, KIB(64));
    json_write_init(&w, &out);
    json_begin_object(&w);
    while (json_next(&it, NULL, &item)) {
        struct json_value value = json_get(item, "value");
        const char *name = json_cstr(json_get(item, "name"));

        json_add_value(&w, name, value);
        if (strcmp(name, "id") == 0)
            copy_text(ret->id, sizeof(ret->id), json_cstr(value) ? json_cstr(value) : json_to_str(a, value));
    }
    json_end(&w);
    copy_text(ret->values, sizeof(ret->values), buf_str(&out));
    buf_clear(&out);
}

/* The changes of the table up to now, as wal2json prints them (format 2: one line for each). */
static size_t read_changes(struct events_rig *rig, const char *table, struct change changes[CHANGES])
{
    char path[128], end[64], tables[80], line[8192];
    PGresult *result = PQexec(rig->db, "SELECT pg_current_wal_insert_lsn()");
    FILE *file;
    size_t n = 0;

    snprintf(path, sizeof(path), "%s/changes", rig->place->cluster->folder);
    snprintf(end, sizeof(end), "--endpos=%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    snprintf(tables, sizeof(tables), "add-tables=%s", table);
    sql(rig, "CHECKPOINT"); /* the log goes on beyond the end */
    assert_int_equal(run_program("pg_recvlogical",
                                 (const char *const[]){ "-d", rig->place->url, "-S", "peer", "--start", "--no-loop",
                                                        end, "-o", "format-version=2", "-o",
                                                        "include-transaction=false", "-o", tables, "-f", path, NULL }),
                     0);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) && n < CHANGES) {
        AUTO(arena_freep) struct arena *a = arena_new();
        struct json_value change;

        if (json_parse(a, slice_of(line), &change, NULL) == 0)
            take_change(a, change, &changes[n++]);
    }
    fclose(file);
    unlink(path);
    return n;
}

static void the_events_are_the_changes_that_another_reader_finds(void **state)
{
    struct events_rig *rig = *state;
    struct change changes[CHANGES] = { 0 };
    const struct recorded *ev;
    size_t n;

    if (!has_wal2json())
        SKIP_TEST("wal2json is not installed");
    sql(rig, "SELECT pg_create_logical_replication_slot('peer', 'wal2json')");
    psql(rig, "INSERT INTO svc_activities (raw_data) SELECT jsonb_build_object('i', i) FROM generate_series(1, 5) i");
    psql(rig, "BEGIN; DELETE FROM svc_activities WHERE raw_data->>'i' = '1'; ROLLBACK");
    psql(rig, "UPDATE svc_activities SET raw_data = raw_data || '{\"more\": true}' WHERE raw_data->>'i' IN ('2', '3')");
    psql(rig, "SELECT svc_fn_claim_task(id, 'peer') FROM svc_activities WHERE raw_data->>'i' = '4'");
    psql(rig, "BEGIN; INSERT INTO svc_activities (raw_data) VALUES ('{\"i\": 6}');"
              " DELETE FROM svc_activities WHERE raw_data->>'i' IN ('5', '6'); COMMIT");
    ev = recorder_wait(rig->rec, 11);
    n = read_changes(rig, "public.svc_activities", changes);
    assert_int_equal(n, 11);
    assert_int_equal(recorder_n(rig->rec), 11);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(backend_op_name(ev[i].op)[0], changes[i].action);
        assert_string_equal(ev[i].id, changes[i].id);
    }
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
    sql(rig, "SELECT pg_drop_replication_slot('peer')");
}

static void declare_notes(struct events_rig *rig)
{
    struct table_column columns[] = { { .name = "id", .type = TABLE_INT8, .is_key = true },
                                      { .name = "ok", .type = TABLE_BOOL, .is_nullable = true },
                                      { .name = "price", .type = TABLE_NUMERIC, .is_nullable = true },
                                      { .name = "text", .type = TABLE_TEXT, .is_nullable = true } };
    const struct table_shape notes = { .table = "notes", .columns = columns, .n_columns = ARRAY_SIZE(columns) };
    struct backend *b = postgres_open(rig->place);
    struct err e = { 0 };

    must(backend_declare(b, &notes, &e), &e);
    b->ops->close(b);
}

static void the_records_of_a_declared_table_are_those_that_another_reader_finds(void **state)
{
    struct events_rig *rig = *state;
    struct change changes[CHANGES] = { 0 };
    const struct recorded *ev;

    if (!has_wal2json())
        SKIP_TEST("wal2json is not installed");
    declare_notes(rig);
    sql(rig, "SELECT pg_create_logical_replication_slot('peer', 'wal2json')");
    psql(rig, "INSERT INTO notes VALUES (2, true, 1.25, 'a \"b\" ü'), (1, false, NULL, NULL)");
    psql(rig, "BEGIN; DELETE FROM notes WHERE id = 1; ROLLBACK");
    psql(rig, "BEGIN; UPDATE notes SET id = 3, ok = NULL WHERE id = 2; INSERT INTO notes VALUES (4); COMMIT");
    psql(rig, "DELETE FROM notes WHERE id <> 4");
    ev = recorder_wait(rig->rec, 6);
    assert_int_equal(read_changes(rig, "public.notes", changes), 6);
    assert_int_equal(recorder_n(rig->rec), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(backend_op_name(ev[i].op)[0], changes[i].action);
        assert_string_equal(ev[i].id, changes[i].id);
        assert_string_equal(ev[i].op == BACKEND_DELETE ? ev[i].old_raw : ev[i].new_raw, changes[i].values);
    }
    assert_int_equal(recorder_n_gaps(rig->rec), 0);
    sql(rig, "SELECT pg_drop_replication_slot('peer')");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVENTS_TEST_LOGICAL(the_events_are_the_changes_that_another_reader_finds),
        EVENTS_TEST_STREAM(the_events_are_the_changes_that_another_reader_finds),
        EVENTS_TEST_STREAM(the_records_of_a_declared_table_are_those_that_another_reader_finds),
    };

    if (!cluster_is_installed())
        return puts("1..0 # SKIP no PostgreSQL is installed") < 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
