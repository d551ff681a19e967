#include "pg/pg_private.h"

#include "base/hash.h"
#include "base/limits.h"

#include <libpq-fe.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* ---- error texts ---- */

int pg_notify_error(const char *message, struct err *e)
{
    size_t n = message ? strcspn(message, "\n") : 0;

    return err_set(e, -EIO, "STORE_FAILED", "PostgreSQL: %.*s", n ? (int)MIN(n, (size_t)INT16_MAX) : INT16_MAX,
                   n ? message : "the server gives no reason");
}

/* No connection was made: the server is unavailable. */
static int err_absence(const PGconn *conn, struct err *e)
{
    struct err why = { 0 };

    (void)!pg_notify_error(PQerrorMessage(conn), &why);
    return err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "%s", why.text);
}

/* Reports the end of a wait as an error of the store, except when the client has left. */
static int notify_wait(int r, const struct err *why, struct err *e)
{
    return r == -ECANCELED ? err_set(e, r, why->code, "%s", why->text)
                           : err_set(e, -EIO, "STORE_FAILED", "PostgreSQL: %s", why->text);
}

/* ---- the amount of data the server has sent ---- */

/* Bytes that libpq has read from the socket. */
static uint64_t received(const PGconn *conn)
{
    struct tcp_info info;
    socklen_t n = sizeof(info);
    int n_unread = 0;

    memset(&info, 0, sizeof(info));
    if (getsockopt(PQsocket(conn), IPPROTO_TCP, TCP_INFO, &info, &n) < 0 ||
        ioctl(PQsocket(conn), FIONREAD, &n_unread) < 0)
        return 0;
    return info.tcpi_bytes_received - MIN(info.tcpi_bytes_received, (uint64_t)MAX(n_unread, 0));
}

/* Bytes other than rows: libpq keeps incomplete messages and all notices and parameters in memory, so these are
 * limited. */
static uint64_t loose_bytes(const struct pg_link *l)
{
    uint64_t n = received(l->conn), n_rows = l->n_row_bytes + l->n_row_bytes / TLS_SHARE;

    return n > n_rows ? n - n_rows : 0;
}

static int check_loose(struct pg_link *l, struct err *e)
{
    if (loose_bytes(l) <= l->max_loose)
        return 0;
    l->is_flooded = true;
    return err_set(e, -EIO, "STORE_FAILED", "PostgreSQL: it sent more than %zu bytes that are no whole row",
                   l->max_loose);
}

static int wait_for(struct pg_link *l, const struct net_wait *wait, short events, struct err *e)
{
    struct err why = { 0 };
    int r = net_wait_fd(wait, PQsocket(l->conn), events, &why);

    return r < 0 ? notify_wait(r, &why, e) : check_loose(l, e);
}

/* Twice with TLS: poll() does not see the part of a record that the TLS library holds, 16 KiB at most, of which one
 * call takes at least 8 KiB. */
static bool consume(PGconn *conn)
{
    return PQconsumeInput(conn) == 1 && (!PQsslInUse(conn) || PQconsumeInput(conn) == 1);
}

/* ---- opening ---- */

static void quiet(void *arg, const PGresult *notice)
{
}

static int connect_on(struct pg_link *l, const struct net_wait *wait, struct err *e)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    bool is_there = false; /* the server has accepted the connection */
    int r = 0;

    while (r == 0 && state != PGRES_POLLING_OK) {
        r = wait_for(l, wait, state == PGRES_POLLING_WRITING ? POLLOUT : POLLIN, e);
        if (r == 0)
            state = PQconnectPoll(l->conn);
        if (r == 0 && state == PGRES_POLLING_FAILED)
            r = is_there ? pg_notify_error(PQerrorMessage(l->conn), e) : err_absence(l->conn, e);
        is_there = is_there || PQstatus(l->conn) == CONNECTION_AWAITING_RESPONSE ||
                   PQstatus(l->conn) == CONNECTION_SSL_STARTUP;
    }
    return r;
}

/* Of "... FATAL:  28P01: words": libpq gives the state of a refused connection in its words only. NULL: none is there.
 */
static char *find_sqlstate(char *text)
{
    for (char *at = strstr(text, ":  "); at; at = strstr(at + 1, ":  "))
        if (strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == PG_SQLSTATE_SIZE - 1 &&
            strncmp(at + 3 + PG_SQLSTATE_SIZE - 1, ": ", 2) == 0)
            return at + 3;
    return NULL;
}

/* Takes the state out of the words. */
static void take_sqlstate(struct err *why, char ret[PG_SQLSTATE_SIZE])
{
    char *state = find_sqlstate(why->text);

    if (!state)
        return;
    memcpy(ret, state, PG_SQLSTATE_SIZE - 1);
    memmove(state, state + PG_SQLSTATE_SIZE + 1, strlen(state + PG_SQLSTATE_SIZE + 1) + 1);
}

int pg_link_open(const char *const *names, const char *const *values, const struct net_wait *wait,
                 char sqlstate[PG_SQLSTATE_SIZE], struct pg_link **ret, struct err *e)
{
    struct pg_link *l = xcalloc(1, sizeof(*l));
    struct err why = { 0 };
    int r = 0;

    l->max_loose = LIMIT_STORE_LOOSE_BYTES;
    l->conn = PQconnectStartParams(names, values, 0);
    PQsetErrorVerbosity(l->conn, PQERRORS_VERBOSE);
    if (!l->conn || PQstatus(l->conn) == CONNECTION_BAD)
        r = err_absence(l->conn, &why);
    if (r == 0) {
        PQsetNoticeReceiver(l->conn, quiet, NULL);
        r = connect_on(l, wait, &why);
    }
    if (r == 0 && PQsetnonblocking(l->conn, 1) < 0)
        r = pg_notify_error(PQerrorMessage(l->conn), &why);
    if (r < 0) {
        take_sqlstate(&why, l->sqlstate);
        if (sqlstate)
            memcpy(sqlstate, l->sqlstate, PG_SQLSTATE_SIZE);
        if (e)
            *e = why;
        pg_link_close(l);
        return r;
    }
    *ret = l;
    return 0;
}

struct pg_link *pg_link_close(struct pg_link *l)
{
    if (!l)
        return NULL;
    PQfinish(l->conn);
    free(l);
    return NULL;
}

bool pg_link_is_dead(const struct pg_link *l)
{
    return PQstatus(l->conn) != CONNECTION_OK;
}

int pg_link_pid(const struct pg_link *l)
{
    return PQbackendPID(l->conn);
}

bool pg_link_is_flooded(const struct pg_link *l)
{
    return l->is_flooded;
}

bool pg_link_is_broken(const struct pg_link *l)
{
    return l->is_broken || pg_link_is_dead(l);
}

bool pg_link_is_alive(struct pg_link *l)
{
    struct pollfd fd = { .fd = PQsocket(l->conn), .events = POLLIN };

    while (!pg_link_is_dead(l) && poll(&fd, 1, 0) > 0)
        if (!consume(l->conn) || loose_bytes(l) > l->max_loose)
            return false;
    return !pg_link_is_broken(l);
}

void pg_link_allow(struct pg_link *l, size_t max_row_bytes)
{
    l->max_loose = max_row_bytes;
}

const char *pg_link_sqlstate(const struct pg_link *l)
{
    return l->sqlstate;
}

bool pg_link_is_reusable(const struct pg_link *l)
{
    return !pg_link_is_broken(l) && PQtransactionStatus(l->conn) == PQTRANS_IDLE && loose_bytes(l) < l->max_loose / 2;
}

/* ---- statements ---- */

int pg_flush(struct pg_link *l, const struct net_wait *wait, bool is_sent, struct err *e)
{
    int r = 0, left = is_sent ? 1 : -1;

    while (left > 0 && (left = PQflush(l->conn)) > 0) {
        r = wait_for(l, wait, POLLIN | POLLOUT, e);
        if (r < 0)
            return r;
        left = consume(l->conn) ? 1 : -1;
    }
    return left < 0 ? pg_notify_error(PQerrorMessage(l->conn), e) : 0;
}

Oid *pg_text_types(size_t n)
{
    Oid *types = xcalloc(n + 1, sizeof(*types));

    for (size_t i = 0; i < n; i++)
        types[i] = TEXT_OID;
    return types;
}

/* name NULL: the statement is not prepared. */
static int send_statement(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st,
                          const char *name, struct err *e)
{
    AUTO(freep) Oid *types = pg_text_types(st->n_params);
    int n = (int)st->n_params, is_sent;

    if (st->is_script)
        is_sent = PQsendQuery(l->conn, st->sql);
    else if (name)
        is_sent = PQsendQueryPrepared(l->conn, name, n, st->params, NULL, NULL, 0);
    else
        is_sent = PQsendQueryParams(l->conn, st->sql, n, types, st->params, NULL, NULL, 0);
    return pg_flush(l, wait, is_sent == 1 && PQsetSingleRowMode(l->conn) == 1, e);
}

/* *ret NULL: the statement has ended. */
int pg_next_result(struct pg_link *l, const struct net_wait *wait, PGresult **ret, struct err *e)
{
    int r = 0;

    while (r == 0 && PQisBusy(l->conn)) {
        r = wait_for(l, wait, POLLIN, e);
        if (r == 0 && !consume(l->conn))
            r = pg_notify_error(PQerrorMessage(l->conn), e);
    }
    if (r == 0)
        *ret = PQgetResult(l->conn);
    return r;
}

static void count_row(struct pg_link *l, const PGresult *row)
{
    l->n_row_bytes += ROW_OVERHEAD;
    for (int i = 0; i < PQnfields(row); i++)
        l->n_row_bytes += COLUMN_OVERHEAD + (size_t)PQgetlength(row, 0, i);
}

static int read_changes(PGresult *result, const struct pg_statement *st, struct err *e)
{
    const char *text = PQcmdTuples(result);
    char *end;
    long long n;

    if (!st->ret_changes)
        return 0;
    errno = 0;
    n = strtoll(text, &end, 10);
    if (!*text || *end || errno || n < 0)
        return pg_fault(e, "it does not say how many rows were changed");
    *st->ret_changes = n;
    return 0;
}

static void keep_refusal(struct pg_link *l, const PGresult *result, const char *message, struct err *refusal)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    pg_notify_error(message, refusal);
    if (state && strlen(state) < sizeof(l->sqlstate))
        memcpy(l->sqlstate, state, strlen(state) + 1);
}

/* After a refusal by the server the connection stays usable; after any other error it is not. */
static int take_result(struct pg_link *l, PGresult *result, const struct pg_statement *st, struct pg_tally *tally,
                       struct err *refusal, struct err *e)
{
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

    switch (PQresultStatus(result)) {
    case PGRES_SINGLE_TUPLE:
        count_row(l, result);
        return pg_row_take((const struct pg_row *)result, st, tally, e);
    case PGRES_TUPLES_OK:
        return 0;
    case PGRES_COMMAND_OK:
        return read_changes(result, st, e);
    case PGRES_FATAL_ERROR:
        if (PQstatus(l->conn) != CONNECTION_OK || !message)
            return pg_notify_error(message ? message : PQerrorMessage(l->conn), e);
        if (!refusal->text[0])
            keep_refusal(l, result, message, refusal);
        return 0;
    default:
        return pg_fault(e, "it is neither rows nor an error (%s)", PQresStatus(PQresultStatus(result)));
    }
}

int pg_take_results(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st, struct err *refusal,
                    struct err *e)
{
    struct pg_tally tally = { 0 };
    PGresult *result = NULL;
    int r;

    do {
        r = pg_next_result(l, wait, &result, e);
        if (r == 0 && result)
            r = take_result(l, result, st, &tally, refusal, e);
        if (r == 0 && !result)
            return 0;
        PQclear(TAKE(result));
    } while (r == 0);
    return r;
}

/* One statement from its text or under the name it was prepared with. */
static int run_once(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st, const char *name,
                    struct err *e)
{
    struct err refusal = { 0 };
    int r;

    l->sqlstate[0] = '\0';
    r = send_statement(l, wait, st, name, e);
    if (r == 0)
        r = pg_take_results(l, wait, st, &refusal, e);
    l->is_broken = l->is_broken || r < 0;
    return r == 0 && refusal.text[0] ? err_set(e, -EIO, refusal.code, "%s", refusal.text) : r;
}

/* ---- prepared statements ---- */

static bool is_prepared(const struct pg_link *l, uint64_t hash)
{
    for (size_t i = 0; i < l->n_prepared; i++)
        if (l->prepared[i] == hash)
            return true;
    return false;
}

static int prepare(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st, const char *name,
                   struct err *e)
{
    AUTO(freep) Oid *types = pg_text_types(st->n_params);
    const struct pg_statement nothing = { .sql = st->sql };
    struct err refusal = { 0 };
    int r;

    l->sqlstate[0] = '\0';
    r = pg_flush(l, wait, PQsendPrepare(l->conn, name, st->sql, (int)st->n_params, types) == 1, e);
    if (r == 0)
        r = pg_take_results(l, wait, &nothing, &refusal, e);
    l->is_broken = l->is_broken || r < 0;
    return r == 0 && refusal.text[0] ? err_set(e, -EIO, refusal.code, "%s", refusal.text) : r;
}

/* The names that a pooler mixes up: the statement is unknown to this server, or another client has prepared it. A plan
 * whose columns have changed is stale. None of them has run the statement. */
static bool is_name_refused(const struct pg_link *l)
{
    static const char *const states[] = { "26000", "42P05", "0A000" };

    for (size_t i = 0; i < ARRAY_SIZE(states); i++)
        if (strcmp(l->sqlstate, states[i]) == 0)
            return true;
    return false;
}

/* The name is the hash of the text, so a name that another client made means the same. */
int pg_find_name(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st, char name[PG_NAME_SIZE],
                 struct err *e)
{
    uint64_t hash = hash_fast(slice_of(st->sql));
    int r = 0;

    name[0] = '\0';
    if (!is_prepared(l, hash) && l->n_prepared == PREPARED_MAX)
        return 0;
    snprintf(name, PG_NAME_SIZE, "hearth_%016llx", (unsigned long long)hash);
    if (is_prepared(l, hash))
        return 0;
    r = prepare(l, wait, st, name, e);
    if (r == 0)
        l->prepared[l->n_prepared++] = hash;
    return r;
}

static int run_prepared(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st, struct err *e)
{
    char name[PG_NAME_SIZE];
    int r = pg_find_name(l, wait, st, name, e);

    return r < 0 ? r : run_once(l, wait, st, *name ? name : NULL, e);
}

int pg_link_run(struct pg_link *l, const struct net_wait *wait, const struct pg_statement *st, struct err *e)
{
    struct err why = { 0 };
    int r;

    if (!st->is_prepared || l->is_pooled)
        return run_once(l, wait, st, NULL, e);
    r = run_prepared(l, wait, st, &why);
    if (r < 0 && !pg_link_is_broken(l) && is_name_refused(l)) {
        l->is_pooled = true;
        return run_once(l, wait, st, NULL, e);
    }
    if (r < 0 && e)
        *e = why;
    return r;
}

/* ---- notifications and streams ---- */

void pg_link_settle(struct pg_link *l)
{
    l->n_row_bytes = MAX(l->n_row_bytes, received(l->conn));
}

int pg_link_take_notices(struct pg_link *l, pg_notice_fn *fn, void *arg)
{
    PGnotify *notice;
    int n = 0;

    for (; (notice = PQnotifies(l->conn)); n++) {
        l->n_row_bytes += NOTICE_OVERHEAD + strlen(notice->relname) + strlen(notice->extra);
        fn(arg, notice->relname, notice->extra);
        PQfreemem(notice);
    }
    return n;
}

static int take_input(struct pg_link *l, struct err *e)
{
    if (!consume(l->conn)) {
        l->is_broken = true;
        return pg_notify_error(PQerrorMessage(l->conn), e);
    }
    return check_loose(l, e);
}

int pg_link_await(struct pg_link *const *links, size_t n, const struct net_wait *wait, struct err *e)
{
    struct pollfd fds[PG_LINK_AWAIT_MAX];
    struct err why = { 0 };
    int r;

    for (size_t i = 0; i < n; i++)
        fds[i] = (struct pollfd){ .fd = PQsocket(links[i]->conn), .events = POLLIN };
    r = net_wait_fds(wait, fds, n, &why);
    if (r == -ETIMEDOUT)
        return 0;
    if (r < 0)
        return notify_wait(r, &why, e);
    r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        if (fds[i].revents)
            r = take_input(links[i], e);
    return r < 0 ? r : 1;
}

int pg_link_listen(struct pg_link *l, const struct net_wait *wait, pg_notice_fn *fn, void *arg, struct err *e)
{
    int n, r = 1;

    while ((n = pg_link_take_notices(l, fn, arg)) == 0 && r > 0)
        r = pg_link_await(&l, 1, wait, e);
    return n > 0 ? n : r;
}

/* What came instead of a message: the server's refusal, when it gave one. */
static int end_of_stream(struct pg_link *l, int n, struct err *e)
{
    PGresult *result = n == -1 && !PQisBusy(l->conn) ? PQgetResult(l->conn) : NULL;
    const char *message = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    struct err refusal = { 0 };
    int r;

    if (message)
        keep_refusal(l, result, message, &refusal);
    r = message ? err_set(e, -EIO, refusal.code, "%s", refusal.text)
                : pg_notify_error(n == -1 ? "the server has ended the stream" : PQerrorMessage(l->conn), e);
    PQclear(result);
    return r;
}

int pg_link_stream(struct pg_link *l, const struct net_wait *wait, const char *command, struct err *e)
{
    struct err refusal = { 0 };
    PGresult *result = NULL;
    int r = pg_flush(l, wait, PQsendQuery(l->conn, command) == 1, e);

    if (r == 0)
        r = pg_next_result(l, wait, &result, e);
    if (r == 0 && PQresultStatus(result) != PGRES_COPY_BOTH) {
        const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

        keep_refusal(l, result, message, &refusal);
        r = err_set(e, -EIO, refusal.code, "%s", refusal.text);
    }
    PQclear(result);
    l->is_broken = l->is_broken || r < 0;
    return r;
}

int pg_link_stream_take(struct pg_link *l, size_t max, pg_message_fn *fn, void *arg, struct err *e)
{
    char *message = NULL;
    int n = 1, r = 0;
    size_t taken = 0;

    while (r >= 0 && taken < max && (n = PQgetCopyData(l->conn, &message, 1)) > 0) {
        l->n_row_bytes += MESSAGE_OVERHEAD + (size_t)n;
        r = fn(arg, (struct slice){ message, (size_t)n }, e);
        PQfreemem(message);
        taken++;
    }
    if (r >= 0 && n < 0) {
        l->is_broken = true;
        return end_of_stream(l, n, e);
    }
    return r < 0 ? r : (int)taken;
}

int pg_link_stream_write(struct pg_link *l, const struct net_wait *wait, struct slice message, struct err *e)
{
    int is_put = PQputCopyData(l->conn, message.p, (int)message.n);

    return pg_flush(l, wait, is_put == 1, e);
}
