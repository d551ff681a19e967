#include "vector/pgvector/pgvector_conninfo.h"

#include "base/arena.h"
#include "base/limits.h"
#include "pg/pg_params.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_PORT = 5432 };

#define NO_FILE "/dev/null/none" /* cannot exist, so no file of the home folder is read instead */

static const char *const allowed[] = {
    "host",
    "port",
    "dbname",
    "user",
    "password",
    "sslmode",
    "sslsni",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "channel_binding",
    "application_name",
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "target_session_attrs",
};

static void options_freep(PQconninfoOption **options)
{
    PQconninfoFree(*options);
}

static const char *value_of(const PQconninfoOption *options, const char *name)
{
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (strcmp(o->keyword, name) == 0)
            return o->val && *o->val ? o->val : NULL;
    return NULL;
}

static bool is_allowed(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
        if (strcmp(allowed[i], name) == 0)
            return true;
    return false;
}

static int refuse(struct err *e, const char *rule)
{
    return err_set(e, -EINVAL, "VALIDATION_ERROR", "The database URL %s", rule);
}

static int check_host(const PQconninfoOption *options, struct err *e)
{
    const char *host = value_of(options, "host"), *port = value_of(options, "port");
    char *end = NULL;
    long number = port ? strtol(port, &end, 10) : DEFAULT_PORT;

    if (!host)
        return refuse(e, "must name a host");
    if (host[0] == '/' || host[0] == '@')
        return refuse(
            e,
            "must name a host, not a Unix socket: there the server would take the app for the person who runs this service");
    if (strchr(host, ','))
        return refuse(e, "must name one host only");
    if ((port && *end) || number < 1 || number > 65535)
        return refuse(e, "must have a port from 1 to 65535");
    return 0;
}

static int parse(const char *url, PQconninfoOption **ret, struct err *e)
{
    AUTO(options_freep) PQconninfoOption *options = NULL;
    int r;

    if (!url || (strncmp(url, "postgresql://", 13) != 0 && strncmp(url, "postgres://", 11) != 0))
        return refuse(e, "must begin with postgresql://");
    options = PQconninfoParse(url, NULL);
    if (!options)
        return refuse(
            e,
            "is no connection URI of PostgreSQL, like postgresql://user:password@host:5432/database?sslmode=require");
    for (const PQconninfoOption *o = options; o->keyword; o++)
        if (o->val && !is_allowed(o->keyword))
            return err_set(
                e, -EINVAL, "VALIDATION_ERROR",
                "The database URL must not set %s: an app may say where the database is and who it is there, not which "
                "files or options of this machine are used",
                o->keyword);
    r = check_host(options, e);
    if (r == 0)
        *ret = TAKE(options);
    return r;
}

int pg_conninfo_check(const char *url, struct err *e)
{
    AUTO(options_freep) PQconninfoOption *options = NULL;

    return parse(url, &options, e);
}

/* ---- connecting ---- */

/* libpq connects only to these addresses; the name is kept for TLS. libpq needs as many names as addresses. */
static void add_addresses(struct pg_params *p, struct arena *a, const char *host,
                          const struct guard_addresses *addresses)
{
    char text[GUARD_TEXT_CHARS];
    const char *hosts = "", *numbers = "";

    for (size_t i = 0; i < addresses->n; i++) {
        guard_address_text((const struct sockaddr *)&addresses->items[i], text);
        hosts = arena_printf(a, "%s%s%s", hosts, i ? "," : "", host);
        numbers = arena_printf(a, "%s%s%s", numbers, i ? "," : "", text);
    }
    pg_params_add(p, "host", hosts);
    pg_params_add(p, "hostaddr", numbers);
}

static void add_given(struct pg_params *p, const PQconninfoOption *options)
{
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (o->val && *o->val)
            pg_params_add(p, o->keyword, o->val);
}

/* Of equal names the later one counts. Without a password none is sent, as PGPASSWORD does not belong to the app. */
static void add_ours(struct pg_params *p, const PQconninfoOption *options)
{
    if (!value_of(options, "password"))
        pg_params_add(p, "password", "none");
    if (!value_of(options, "application_name"))
        pg_params_add(p, "application_name", "hearth");
    pg_params_add(p, "keepalives_idle", "30");
    pg_params_add(p, "client_encoding", "UTF8");
    pg_params_add(p, "passfile", NO_FILE);
    pg_params_add(p, "sslcert", NO_FILE);
    pg_params_add(p, "sslkey", NO_FILE);
    pg_params_add(p, "gssencmode", "disable");
}

static int guard_address(struct pg_params *p, struct arena *a, const PQconninfoOption *options,
                         const struct guard *guard, const struct net_wait *wait, struct err *e)
{
    const char *host = value_of(options, "host"), *port = value_of(options, "port");
    struct guard_addresses addresses = { .n = 0 };
    struct err why = { 0 };
    int r =
        guard_resolve(guard, host, (uint16_t)(port ? strtol(port, NULL, 10) : DEFAULT_PORT), wait, &addresses, &why);

    if (r == -ECANCELED)
        return err_set(e, r, why.code, "%s", why.text);
    if (r == -EHOSTUNREACH || r == -EAGAIN || r == -ETIMEDOUT)
        return err_set(e, -EAGAIN, "VECTOR_STORE_UNAVAILABLE", "PostgreSQL: %s", why.text);
    if (r < 0)
        return err_set(e, -EIO, "VECTOR_STORE_FAILED", "PostgreSQL: %s", why.text);
    add_addresses(p, a, host, &addresses);
    return 0;
}

int pg_conninfo_open(const char *url, const struct guard *guard, const struct net_wait *wait, struct pg_link **ret,
                     struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    AUTO(options_freep) PQconninfoOption *options = NULL;
    struct net_wait connecting = net_wait_part(wait, LIMIT_STORE_CONNECT_MS);
    struct pg_params p = { .n = 0 };
    int r = parse(url, &options, e);

    if (r < 0)
        return r;
    add_given(&p, options);
    r = guard_address(&p, a, options, guard, &connecting, e);
    if (r < 0)
        return r;
    add_ours(&p, options);
    return pg_link_open(p.names, p.values, &connecting, NULL, ret, e);
}
