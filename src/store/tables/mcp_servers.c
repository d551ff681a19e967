#include "store/tables/mcp_servers.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/rows.h"
#include "store/tables/approval_rules.h"

#define COLUMNS "name, sealed, is_enabled, disabled_tools, accepted, era, authorization, created_at, updated_at"

static const struct rows_missing missing = { .code = "SERVER_NOT_FOUND", .what = "MCP server" };

static void read_server(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct mcp_server_row *)into = (struct mcp_server_row){
        .name = sql_text(rows, a, 0),
        .sealed = sql_blob(rows, a, 1),
        .is_enabled = sql_int(rows, 2) != 0,
        .disabled_tools = sql_text(rows, a, 3),
        .accepted = sql_text(rows, a, 4),
        .era = sql_text(rows, a, 5),
        .authorization = sql_blob(rows, a, 6),
        .created_at = sql_text(rows, a, 7),
        .updated_at = sql_text(rows, a, 8),
    };
}

int store_mcp_servers_put(struct store *s, const struct mcp_server_row *row, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    int64_t n = 0;
    int r;

    clock_now_text(now);
    r = store_exec(
        s, e, &n,
        "INSERT INTO mcp_servers (name, sealed, is_enabled, accepted, created_at, updated_at, position) "
        "SELECT ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(position), 0) + 1 FROM mcp_servers) "
        "WHERE (SELECT count(*) FROM mcp_servers WHERE name <> ?) < ? "
        "ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, is_enabled = excluded.is_enabled, "
        "    accepted = excluded.accepted, era = NULL, authorization = NULL, updated_at = excluded.updated_at",
        "sbissssi", row->name, row->sealed, (int64_t)row->is_enabled, row->accepted, now, now, row->name,
        (int64_t)LIMIT_MCP_SERVERS);
    if (r < 0 || n > 0)
        return r;
    return err_set(e, -EDQUOT, "TOO_MANY_SERVERS", "There are %d MCP servers already: remove one that is not used.",
                   LIMIT_MCP_SERVERS);
}

int store_mcp_servers_list(struct store *s, struct arena *a, struct mcp_server_row **ret, size_t *ret_n, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM mcp_servers ORDER BY position", "");
    return r < 0 ? r : rows_all(rows, a, sizeof(struct mcp_server_row), read_server, ret, ret_n, e);
}

int store_mcp_servers_get(struct store *s, struct arena *a, const char *name, struct mcp_server_row *ret, struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r;

    r = sql_query(store_reader(s), &rows, e, "SELECT " COLUMNS " FROM mcp_servers WHERE name = ?", "s", name);
    return r < 0 ? r : rows_one(rows, a, read_server, ret, ROWS_NAMED(missing, name), e);
}

struct deletion {
    const char *name;
    int64_t n;
};

static int delete_row(struct sql_db *db, void *arg, struct err *e)
{
    struct deletion *in = arg;
    int r = sql_exec(db, e, "DELETE FROM mcp_servers WHERE name = ?", "s", in->name);

    in->n = sql_changes(db);
    return r < 0 || in->n == 0 ? r : store_approval_rules_end_of(db, NULL, in->name, e);
}

int store_mcp_servers_delete(struct store *s, const char *name, struct err *e)
{
    struct deletion in = { .name = name };
    int r = store_write(s, delete_row, &in, e);

    return rows_changed(r, in.n, ROWS_NAMED(missing, name), e);
}

int store_mcp_servers_set_enabled(struct store *s, const char *name, bool is_enabled, struct err *e)
{
    int64_t n = 0;
    int r =
        store_exec(s, e, &n, "UPDATE mcp_servers SET is_enabled = ? WHERE name = ?", "is", (int64_t)is_enabled, name);

    return rows_changed(r, n, ROWS_NAMED(missing, name), e);
}

int store_mcp_servers_set_disabled_tools(struct store *s, const char *name, const char *json, struct err *e)
{
    int64_t n = 0;
    int r = store_exec(s, e, &n, "UPDATE mcp_servers SET disabled_tools = ? WHERE name = ?", "ss", json, name);

    return rows_changed(r, n, ROWS_NAMED(missing, name), e);
}

int store_mcp_servers_set_accepted(struct store *s, const char *name, const char *hash, struct err *e)
{
    int64_t n = 0;
    int r = store_exec(s, e, &n, "UPDATE mcp_servers SET accepted = ? WHERE name = ?", "ss", hash, name);

    return rows_changed(r, n, ROWS_NAMED(missing, name), e);
}

int store_mcp_servers_set_era(struct store *s, const char *name, const char *era, struct err *e)
{
    int64_t n = 0;
    int r = store_exec(s, e, &n, "UPDATE mcp_servers SET era = ? WHERE name = ?", "ss", era, name);

    return rows_changed(r, n, ROWS_NAMED(missing, name), e);
}

int store_mcp_servers_set_authorization(struct store *s, const char *name, struct slice sealed, struct err *e)
{
    int64_t n = 0;
    int r = store_exec(s, e, &n, "UPDATE mcp_servers SET authorization = nullif(?, x'') WHERE name = ?", "bs", sealed,
                       name);

    return rows_changed(r, n, ROWS_NAMED(missing, name), e);
}

/* ---- pins ---- */

static void read_pin(struct sql_rows *rows, struct arena *a, void *into)
{
    *(struct mcp_pin_row *)into = (struct mcp_pin_row){
        .tool = sql_text(rows, a, 0),
        .hash = sql_text(rows, a, 1),
        .definition = sql_text(rows, a, 2),
        .offered_hash = sql_text(rows, a, 3),
        .offered_definition = sql_text(rows, a, 4),
    };
}

int store_mcp_pins_list(struct store *s, struct arena *a, const char *server, struct mcp_pin_row **ret, size_t *ret_n,
                        struct err *e)
{
    AUTO(sql_rows_endp) struct sql_rows *rows = NULL;
    int r = sql_query(store_reader(s), &rows, e,
                      "SELECT tool, hash, definition, offered_hash, offered_definition FROM mcp_pins "
                      "WHERE server = ? ORDER BY tool",
                      "s", server);

    return r < 0 ? r : rows_all(rows, a, sizeof(struct mcp_pin_row), read_pin, ret, ret_n, e);
}

struct pins {
    const char *server;
    const struct mcp_pin_row *rows;
    size_t n;
};

static int put_pins(struct sql_db *db, void *arg, struct err *e)
{
    const struct pins *pins = arg;
    char now[TIME_TEXT_SIZE];
    int r = 0;

    clock_now_text(now);
    for (size_t i = 0; r == 0 && i < pins->n; i++)
        r = sql_exec(db, e,
                     "INSERT INTO mcp_pins (server, tool, hash, definition, offered_hash, offered_definition, "
                     "    pinned_at) VALUES (?, ?, ?, ?, ?, ?, ?) "
                     "ON CONFLICT (server, tool) DO UPDATE SET hash = excluded.hash, "
                     "    definition = excluded.definition, offered_hash = excluded.offered_hash, "
                     "    offered_definition = excluded.offered_definition, pinned_at = excluded.pinned_at",
                     "sssssss", pins->server, pins->rows[i].tool, pins->rows[i].hash, pins->rows[i].definition,
                     pins->rows[i].offered_hash, pins->rows[i].offered_definition, now);
    return r;
}

int store_mcp_pins_put(struct store *s, const char *server, const struct mcp_pin_row *rows, size_t n, struct err *e)
{
    struct pins pins = { server, rows, n };

    return n ? store_write(s, put_pins, &pins, e) : 0;
}
