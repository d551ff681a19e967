/* The events of a PostgreSQL database with the schema of the backend, and a recorder that has subscribed.
 *
 *     struct events_rig *rig = *state;             with cmocka_unit_test_setup_teardown(test, events_make, events_end)
 *     sql(rig, "INSERT ..."); ev = recorder_wait(rig->rec, 1);
 */
#pragma once

#include "cluster.h"
#include "recorder.h"
#include "backend/postgres/postgres_events.h"
#include "backend/postgres/postgres_pool.h"

#define EVENTS_TEST(name) cmocka_unit_test_setup_teardown(name, events_make, events_end)
#define EVENTS_TEST_LOGICAL(name)                                                                                      \
    cmocka_unit_test_prestate_setup_teardown(name, events_make, events_end, (void *)(uintptr_t) "logical")
/* With the logical stream as the source of the events; with the choice left to the program. */
#define EVENTS_TEST_STREAM(name)                                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, events_make, events_end, (void *)(uintptr_t) "stream")
#define EVENTS_TEST_AUTO(name)                                                                                         \
    cmocka_unit_test_prestate_setup_teardown(name, events_make, events_end, (void *)(uintptr_t) "auto")
#define ACTIVITIES "public.svc_activities"

struct events_rig {
    enum postgres_events_mode mode;
    struct cluster_place *place;
    PGconn *db;
    struct postgres_events *events;
    struct recorder *rec;
};

/* By libpq itself, independent of the code under test. Returns the first value. */
static inline int64_t sql_on(PGconn *conn, const char *text)
{
    PGresult *result = PQexec(conn, text);
    int64_t n = 0;

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%.300s: %s", text, PQerrorMessage(conn));
    if (PQntuples(result) > 0 && PQnfields(result) > 0)
        n = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return n;
}

static inline PGconn *events_db(const struct events_rig *rig, const char *more)
{
    char url[400];
    PGconn *conn;

    snprintf(url, sizeof(url), "%s %s", rig->place->url, more);
    conn = PQconnectdb(url);
    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(conn));
    return conn;
}

static inline int64_t sql(struct events_rig *rig, const char *text)
{
    return sql_on(rig->db, text);
}

static inline int events_connect(void *arg, bool is_replication, const struct net_wait *wait, struct pg_link **ret,
                                 struct err *e)
{
    const struct events_rig *rig = arg;
    char url[400];

    snprintf(url, sizeof(url), "%s application_name=reader", rig->place->url);
    return postgres_pool_connect(&(struct postgres_place){ .url = url, .is_replication = is_replication }, wait, ret,
                                 e);
}

static inline int events_run(void *arg, const struct pg_statement *st, struct err *e)
{
    const struct net_wait wait = net_wait_of(20000, NULL, NULL);
    struct pg_link *link = NULL;
    int r = events_connect(arg, false, &wait, &link, e);

    if (r == 0)
        r = pg_link_run(link, &wait, st, e);
    pg_link_close(link);
    return r;
}

static inline struct postgres_events *events_open(struct events_rig *rig)
{
    const struct postgres_events_config config = {
        .abbr = "svc",
        .mode = rig->mode,
        .published_ms = 100,
        .connect = events_connect,
        .run = events_run,
        .arg = rig,
    };
    struct postgres_events *ev = NULL;
    struct err e = { 0 };

    must(postgres_events_open(&config, &ev, &e), &e);
    return ev;
}

static inline struct recorder *events_recorder(struct postgres_events *ev)
{
    struct recorder *rec = xcalloc(1, sizeof(*rec));
    struct err e = { 0 };

    pthread_mutex_init(&rec->lock, NULL);
    must(postgres_events_subscribe(ev, record_event, record_gap, rec, &e), &e);
    return rec;
}

static inline int events_make(void **state)
{
    struct events_rig *rig = xcalloc(1, sizeof(*rig));
    const char *kind = *state ? *state : "replica";

    rig->mode = strcmp(kind, "stream") == 0 ? POSTGRES_EVENTS_LOGICAL
                : strcmp(kind, "auto") == 0 ? POSTGRES_EVENTS_AUTO
                                            : POSTGRES_EVENTS_OUTBOX;
    rig->place = cluster_place_make(strcmp(kind, "replica") == 0 ? "replica" : "logical");
    rig->db = events_db(rig, "");
    sql(rig, "SET client_min_messages = warning");
    rig->events = events_open(rig);
    rig->rec = events_recorder(rig->events);
    *state = rig;
    return 0;
}

static inline int events_end(void **state)
{
    struct events_rig *rig = *state;

    rig->events = postgres_events_close(rig->events);
    pthread_mutex_destroy(&rig->rec->lock);
    free(rig->rec);
    PQfinish(rig->db);
    cluster_place_remove(rig->place);
    free(rig);
    return 0;
}

static inline void events_wait_gaps(struct events_rig *rig, int n)
{
    recorder_wait_gaps(rig->rec, n);
}
