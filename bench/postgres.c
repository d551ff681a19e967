/* Measures the PostgreSQL backend on a database whose URL is given; prints one JSON line.
 *
 *     bench_postgres URL setup
 *     bench_postgres URL split MACHINE THREADS N I   claims and completes the waiting rows whose number is I modulo N
 *     bench_postgres URL drain MACHINE THREADS       claims what claimable() gives until nothing waits, as machines do
 *     bench_postgres URL events MODE ROWS            inserts one by one: milliseconds from sent and from answered
 *                                                    to the event
 *     bench_postgres URL writer MODE ROWS COMMITS    rows inserted and changed a second by one program; COMMITS is its
 *                                                    synchronous_commit, on or off
 *
 * MODE: outbox or logical with a reader of that kind, idle without one, none with the triggers of the events disabled.
 */
#include "backend/postgres/postgres_open.h"
#include "backend/postgres/postgres_schema.h"
#include "base/clock.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 64, PAGE = 100, STALE_MS = 300000, EVENT_MS = 20000, WARM = 8 };

struct bench {
    const char *url, *machine;
    struct backend *backend;
    char (*ids)[40];
    int n_ids;
    atomic_int next, n_done, n_failed;
    pthread_barrier_t
        warm;           /* of split: every thread has worked on WARM rows, so the server's sessions have their plans */
    int64_t started_ms; /* when every thread was warm */
    int n_warm;         /* rows done by then */
    _Atomic int64_t event_us;
    pthread_mutex_t lock; /* guards the sweep */
    struct arena *swept;  /* owned */
    struct backend_rows sweep;
    size_t from, n_taken;
};

static PGconn *connect_to(const char *url)
{
    PGconn *conn = PQconnectdb(url);

    if (PQstatus(conn) == CONNECTION_OK)
        return conn;
    fprintf(stderr, "bench_postgres: %s", PQerrorMessage(conn));
    exit(1);
}

static PGresult *query(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);

    if (PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK)
        return result;
    fprintf(stderr, "bench_postgres: %s: %s", sql, PQerrorMessage(conn));
    exit(1);
}

static struct backend *open_backend(const char *url, const char *mode, int n_connections)
{
    const struct backend_postgres_config config = {
        .url = url, .abbr = "svc", .events = postgres_events_mode_of(mode), .n_connections = n_connections
    };
    struct backend *b = NULL;
    struct err e = { 0 };

    if (backend_postgres_open(&config, &b, &e) == 0)
        return b;
    fprintf(stderr, "bench_postgres: %s\n", e.text);
    exit(1);
}

static int set_up(const char *url)
{
    struct err e = { 0 };

    if (postgres_schema_apply(&(struct postgres_place){ .url = url }, &(struct postgres_schema){ .abbr = "svc" }, &e) ==
        0)
        return 0;
    fprintf(stderr, "bench_postgres: %s\n", e.text);
    return 1;
}

/* --- claim and complete --- */

static int work_one(struct bench *b, const char *id)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    struct backend_claim claim = { "svc_activities", id, b->machine, STALE_MS, 3 };
    struct backend_lease lease;
    struct backend_row row;
    int r = backend_claim(b->backend, &claim, a, &row, &lease, NULL);

    if (r == 0)
        r = backend_complete(b->backend, &lease, "{\"ok\":true}", NULL);
    if (r == 0)
        atomic_fetch_add(&b->n_done, 1);
    return r;
}

static bool work_next(struct bench *b)
{
    int i = atomic_fetch_add(&b->next, 1);

    if (i < b->n_ids && work_one(b, b->ids[i]) < 0)
        atomic_fetch_add(&b->n_failed, 1);
    return i < b->n_ids;
}

static void *work_split(void *arg)
{
    struct bench *b = arg;

    for (int i = 0; i < WARM; i++)
        (void)work_next(b);
    if (pthread_barrier_wait(&b->warm) == PTHREAD_BARRIER_SERIAL_THREAD) {
        b->n_warm = atomic_load(&b->n_done);
        b->started_ms = clock_wall_ms();
    }
    pthread_barrier_wait(&b->warm);
    while (work_next(b))
        ;
    return NULL;
}

/* The next row of the machine's sweep; machines begin at different rows of what all of them see. Under the lock. */
static const char *next_of_sweep(struct bench *b)
{
    struct backend_claim as = { "svc_activities", NULL, b->machine, STALE_MS, 3 };
    unsigned seed = (unsigned)clock_mono_us();

    if (b->n_taken == b->sweep.n) {
        arena_free(b->swept);
        b->swept = arena_new();
        b->n_taken = 0;
        if (b->backend->ops->claimable(b->backend, "svc_activities", &as, NULL, PAGE, b->swept, &b->sweep, NULL) < 0)
            b->sweep.n = 0;
        b->from = b->sweep.n > 0 ? (size_t)rand_r(&seed) % b->sweep.n : 0;
    }
    return b->n_taken < b->sweep.n ? b->sweep.items[(b->from + b->n_taken++) % b->sweep.n].id : NULL;
}

static bool take_next(struct bench *b, char ret[40])
{
    const char *id;

    pthread_mutex_lock(&b->lock);
    id = next_of_sweep(b);
    snprintf(ret, 40, "%s", id ? id : "");
    pthread_mutex_unlock(&b->lock);
    return id != NULL;
}

/* One sweep a machine, as a service does it; its threads work on what the sweep found. */
static void *work_drain(void *arg)
{
    struct bench *b = arg;
    char id[40];

    while (take_next(b, id))
        (void)!work_one(b, id);
    return NULL;
}

static void read_ids(struct bench *b, const char *n, const char *i)
{
    PGconn *conn = connect_to(b->url);
    char sql[160];
    PGresult *rows;

    snprintf(sql, sizeof(sql), "SELECT id FROM svc_activities WHERE status = 'pending' AND seq %% %d = %d",
             (int)strtol(n, NULL, 10), (int)strtol(i, NULL, 10));
    rows = query(conn, sql);
    b->n_ids = PQntuples(rows);
    b->ids = xcalloc((size_t)b->n_ids + 1, sizeof(*b->ids));
    for (int k = 0; k < b->n_ids; k++)
        snprintf(b->ids[k], sizeof(b->ids[k]), "%s", PQgetvalue(rows, k, 0));
    PQclear(rows);
    PQfinish(conn);
}

static int run_threads(struct bench *b, int n_threads, void *(*fn)(void *arg))
{
    pthread_t threads[MAX_THREADS];

    b->backend = open_backend(b->url, "outbox", n_threads);
    pthread_barrier_init(&b->warm, NULL, (unsigned)n_threads);
    b->started_ms = clock_wall_ms();
    for (int i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, fn, b);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    printf("{\"done\":%d,\"warm\":%d,\"failed\":%d,\"started_ms\":%lld,\"ended_ms\":%lld}\n", atomic_load(&b->n_done),
           b->n_warm, atomic_load(&b->n_failed), (long long)b->started_ms, (long long)clock_wall_ms());
    pthread_barrier_destroy(&b->warm);
    backend_close(b->backend);
    arena_free(b->swept);
    return atomic_load(&b->n_failed) ? 1 : 0;
}

/* --- events --- */

static void note_event(void *arg, const struct backend_event *event)
{
    struct bench *b = arg;

    if (event->op == BACKEND_INSERT)
        atomic_store(&b->event_us, clock_mono_us());
}

static void ignore_gap(void *arg)
{
}

static int64_t await_event(struct bench *b, int64_t since_us)
{
    int64_t at_us;

    while ((at_us = atomic_load(&b->event_us)) < since_us)
        if (clock_mono_us() > since_us + (int64_t)EVENT_MS * 1000) {
            fprintf(stderr, "bench_postgres: an event did not come\n");
            exit(1);
        }
    return at_us;
}

static int measure_events(struct bench *b, const char *mode, int n)
{
    PGconn *conn = connect_to(b->url);
    struct err e = { 0 };

    b->backend = open_backend(b->url, mode, 2);
    if (b->backend->ops->subscribe(b->backend, note_event, ignore_gap, b, &e) < 0)
        return 1;
    printf("[");
    for (int i = 0; i < n; i++) {
        int64_t sent_us = clock_mono_us(), answered_us, event_us;

        PQclear(
            query(conn, "INSERT INTO svc_activities (raw_data) VALUES ('{\"kind\":\"invoice\",\"amount\":129.5}')"));
        answered_us = clock_mono_us();
        event_us = await_event(b, sent_us);
        printf("%s[%g,%g]", i ? "," : "", (double)(event_us - sent_us) / 1e3, (double)(event_us - answered_us) / 1e3);
    }
    printf("]\n");
    backend_close(b->backend);
    PQclear(query(conn, "UPDATE svc_outbox_mark SET wanted_until = NULL; TRUNCATE svc_activities, svc_outbox"));
    PQfinish(conn);
    return 0;
}

/* --- the writer --- */

static void set_triggers(PGconn *conn, const char *verb)
{
    static const char *const names[] = { "inserted", "updated", "deleted", "truncated" };
    char sql[120];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(sql, sizeof(sql), "ALTER TABLE svc_activities %s TRIGGER hearth_2_%s", verb, names[i]);
        PQclear(query(conn, sql));
    }
}

static double write_rows(PGconn *conn, int n)
{
    int64_t started_us = clock_mono_us();

    for (int i = 0; i < n; i++) {
        PGresult *row =
            query(conn, "INSERT INTO svc_activities (raw_data) VALUES ('{\"kind\":\"invoice\",\"amount\":129.5,"
                        "\"text\":\"please check\"}') RETURNING id");
        char sql[160];

        snprintf(sql, sizeof(sql), "UPDATE svc_activities SET raw_data = raw_data || '{\"seen\":true}' WHERE id = '%s'",
                 PQgetvalue(row, 0, 0));
        PQclear(row);
        PQclear(query(conn, sql));
    }
    return (double)n * 1e6 / (double)(clock_mono_us() - started_us);
}

static int measure_writer(struct bench *b, const char *mode, int n, bool is_durable)
{
    PGconn *conn = connect_to(b->url);
    bool has_reader = strcmp(mode, "outbox") == 0 || strcmp(mode, "logical") == 0;
    struct err e = { 0 };

    PQclear(query(conn, "UPDATE svc_outbox_mark SET wanted_until = NULL"));
    PQclear(query(conn, is_durable ? "SET synchronous_commit = on" : "SET synchronous_commit = off"));
    if (strcmp(mode, "none") == 0)
        set_triggers(conn, "DISABLE");
    if (has_reader) {
        b->backend = open_backend(b->url, mode, 2);
        if (b->backend->ops->subscribe(b->backend, note_event, ignore_gap, b, &e) < 0)
            return 1;
    }
    printf("%g\n", write_rows(conn, n));
    if (has_reader)
        backend_close(b->backend);
    set_triggers(conn, "ENABLE");
    PQclear(query(conn, "UPDATE svc_outbox_mark SET wanted_until = NULL; TRUNCATE svc_activities, svc_outbox"));
    PQfinish(conn);
    return 0;
}

int main(int argc, char **argv)
{
    struct bench b = { .url = argc > 1 ? argv[1] : "", .lock = PTHREAD_MUTEX_INITIALIZER };
    const char *what = argc > 2 ? argv[2] : "";

    if (strcmp(what, "setup") == 0)
        return set_up(b.url);
    if (strcmp(what, "events") == 0 && argc == 5)
        return measure_events(&b, argv[3], (int)strtol(argv[4], NULL, 10));
    if (strcmp(what, "writer") == 0 && argc == 6)
        return measure_writer(&b, argv[3], (int)strtol(argv[4], NULL, 10), strcmp(argv[5], "on") == 0);
    if (argc < 5 || strtol(argv[4], NULL, 10) < 1 || strtol(argv[4], NULL, 10) > MAX_THREADS)
        return 2;
    b.machine = argv[3];
    if (strcmp(what, "drain") == 0)
        return run_threads(&b, (int)strtol(argv[4], NULL, 10), work_drain);
    if (strcmp(what, "split") != 0 || argc < 7)
        return 2;
    read_ids(&b, argv[5], argv[6]);
    return run_threads(&b, (int)strtol(argv[4], NULL, 10), work_split);
}
