/* An own PostgreSQL for a test program, with prepared transactions where its level is logical: made on the first use in
 * a temporary folder, reached over a Unix socket only, ended and removed when the program exits (also when it is
 * killed: the server gets a signal then). A place is a database of its own, copied from one that has the schema.
 *
 *     struct cluster_place *place = cluster_place_make("logical");
 *     conn = PQconnectdb(place->url);
 *     cluster_place_remove(place);
 */
#pragma once

#include "fixture.h"
#include "../wait.h"
#include "backend/postgres/postgres_schema.h"
#include "base/util.h"

#include <ftw.h>
#include <glob.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct cluster {
    const char *wal_level;
    char folder[64], url[200]; /* of the database postgres */
    pid_t pid, owner;          /* the server, and the process that may end it */
    int n_places;
};

/* One of each level. */
static struct cluster clusters[2];

struct cluster_place {
    struct cluster *cluster;
    char name[40], url[200];
};

/* The folder of the server's programs; "": no server is installed. */
static inline const char *cluster_programs(void)
{
    static char found[200];
    glob_t g;

    if (!found[0] && glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &g) == 0) {
        snprintf(found, sizeof(found), "%s", g.gl_pathv[g.gl_pathc - 1]);
        *strrchr(found, '/') = '\0';
        globfree(&g);
    }
    return found;
}

static inline bool cluster_is_installed(void)
{
    return cluster_programs()[0] != '\0';
}

/* The server refuses to run as root. */
static inline pid_t cluster_spawn(struct cluster *c, const char *program, const char *const *args)
{
    const char *argv[32] = { "setpriv", "--pdeathsig", "QUIT" };
    char path[300];
    size_t n = 3;
    pid_t pid;

    if (geteuid() == 0) {
        argv[n++] = "--reuid=nobody";
        argv[n++] = "--regid=nogroup";
        argv[n++] = "--clear-groups";
    }
    snprintf(path, sizeof(path), "%s/%s", cluster_programs(), program);
    argv[n++] = path;
    while (*args)
        argv[n++] = *args++;
    argv[n] = NULL;
    pid = fork();
    if (pid == 0) {
        if (chdir(c->folder) == 0 && freopen("log", "a", stdout) && freopen("log", "a", stderr))
            execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return pid;
}

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return remove(path);
}

static inline void cluster_end(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(clusters); i++) {
        struct cluster *c = &clusters[i];

        if (c->pid <= 0 || c->owner != getpid())
            continue;
        kill(c->pid, SIGQUIT);
        waitpid(c->pid, NULL, 0);
        nftw(c->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        c->pid = 0;
    }
}

static inline bool cluster_answers(void *arg)
{
    const struct cluster *c = arg;

    return PQping(c->url) == PQPING_OK;
}

static inline void cluster_ignore(void *arg, const PGresult *notice)
{
}

static inline void cluster_exec(const char *url, const char *sql)
{
    PGconn *conn = PQconnectdb(url);
    PGresult *result;
    ExecStatusType status;

    PQsetNoticeReceiver(conn, cluster_ignore, NULL);
    result = PQexec(conn, sql);
    status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%.300s: %s", sql, PQerrorMessage(conn));
    PQclear(result);
    PQfinish(conn);
}

static inline void cluster_url(const struct cluster *c, const char *database, char *out, size_t n)
{
    char folder[sizeof(c->folder)]; /* `out` may be a member of c */

    memcpy(folder, c->folder, sizeof(folder));
    snprintf(out, n, "host=%s dbname=%s user=hearth_test", folder, database);
}

static inline void cluster_make_template(struct cluster *c)
{
    const struct postgres_place place = { .url = c->url };
    struct err e = { 0 };
    char url[200];

    cluster_exec(c->url, "CREATE DATABASE made");
    cluster_url(c, "made", url, sizeof(url));
    must(postgres_schema_apply(&(struct postgres_place){ .url = url, .n_connections = place.n_connections },
                               &(struct postgres_schema){ .abbr = "svc" }, &e),
         &e);
}

static inline void cluster_start(struct cluster *c, const char *wal_level)
{
    static const char *const init[] = { "-D",   "data",       "-U",        "hearth_test",       "-A", "trust", "-E",
                                        "UTF8", "--locale=C", "--no-sync", "--no-instructions", NULL };
    const char *const serve[] = { "-D", "data",
                                  "-k", c->folder,
                                  "-c", "listen_addresses=",
                                  "-c", "fsync=off",
                                  "-c", "shared_buffers=16MB",
                                  "-c", "max_connections=100",
                                  "-c", strcmp(wal_level, "logical") == 0 ? "max_prepared_transactions=5" : "jit=off",
                                  "-c", "max_replication_slots=30",
                                  "-c", "max_wal_senders=30",
                                  "-c", "wal_level",
                                  NULL, NULL };
    const char *args[ARRAY_SIZE(serve)];
    char level[40];
    int status = -1;
    pid_t pid;

    snprintf(c->folder, sizeof(c->folder), "/tmp/hearth-pg-XXXXXX");
    assert_non_null(mkdtemp(c->folder));
    if (geteuid() == 0) {
        const struct passwd *nobody = getpwnam("nobody");

        assert_int_equal(chown(c->folder, nobody->pw_uid, nobody->pw_gid), 0);
    }
    pid = cluster_spawn(c, "initdb", init);
    waitpid(pid, &status, 0);
    if (status != 0)
        fail_msg("initdb failed: %s/log", c->folder);
    memcpy(args, serve, sizeof(args));
    snprintf(level, sizeof(level), "wal_level=%s", wal_level);
    args[ARRAY_SIZE(serve) - 3] = level;
    c->wal_level = wal_level;
    c->owner = getpid();
    c->pid = cluster_spawn(c, "postgres", args);
    atexit(cluster_end);
    cluster_url(c, "postgres", c->url, sizeof(c->url));
    if (!wait_until(cluster_answers, c))
        fail_msg("the server does not answer: %s/log", c->folder);
    cluster_make_template(c);
}

static inline struct cluster *cluster_of(const char *wal_level)
{
    size_t i = 0;

    while (clusters[i].pid > 0 && strcmp(clusters[i].wal_level, wal_level) != 0)
        i++;
    if (clusters[i].pid <= 0)
        cluster_start(&clusters[i], wal_level);
    return &clusters[i];
}

static inline struct cluster_place *cluster_place_make(const char *wal_level)
{
    struct cluster_place *place = xcalloc(1, sizeof(*place));
    char sql[120];

    place->cluster = cluster_of(wal_level);
    snprintf(place->name, sizeof(place->name), "place_%d", place->cluster->n_places++);
    snprintf(sql, sizeof(sql), "CREATE DATABASE %s TEMPLATE made STRATEGY file_copy", place->name);
    cluster_exec(place->cluster->url, sql);
    cluster_url(place->cluster, place->name, place->url, sizeof(place->url));
    return place;
}

static inline bool cluster_has_no_slot(void *arg)
{
    const struct cluster_place *place = arg;
    PGconn *conn = PQconnectdb(place->cluster->url);
    char sql[120];
    PGresult *result;
    bool is_so;

    snprintf(sql, sizeof(sql), "SELECT 1 FROM pg_replication_slots WHERE database = '%s'", place->name);
    result = PQexec(conn, sql);
    is_so = PQntuples(result) == 0;
    PQclear(result);
    PQfinish(conn);
    return is_so;
}

/* The server ends a slot after its connection, in its own time. */
static inline void cluster_place_remove(struct cluster_place *place)
{
    char sql[100];

    if (!wait_until(cluster_has_no_slot, place))
        fail_msg("a replication slot stays behind");
    snprintf(sql, sizeof(sql), "DROP DATABASE %s WITH (FORCE)", place->name);
    cluster_exec(place->cluster->url, sql);
    free(place);
}
