/* MCP servers that the administrator configured (table mcp_servers), and the pinned definitions of their tools (table
 * mcp_pins). Any thread; row texts live in the arena; the store sets the times. Servers are ordered by their first
 * configuration; their pins are deleted with them.
 *
 *     r = store_mcp_servers_put(store, &row, e);
 */
#pragma once

#include "store/store.h"

struct mcp_server_row {
    const char *name;
    struct slice sealed; /* sealed JSON with the whole definition (mcp/server.h) */
    bool is_enabled;
    const char *disabled_tools; /* JSON array of strings */
    const char *accepted;       /* hash of the command that a person accepted; NULL: none yet */
    const char *era;            /* the protocol era that the server was found to speak; NULL: not known */
    struct slice authorization; /* sealed JSON of OAuth (mcp/oauth.h); empty: none */
    const char *created_at, *updated_at;
};

/* Replaces a server of the same name in its position; its disabled tools and pins stay, its era and authorization are
 * forgotten. -EDQUOT TOO_MANY_SERVERS beyond LIMIT_MCP_SERVERS. */
int store_mcp_servers_put(struct store *s, const struct mcp_server_row *row, struct err *e) MUST_CHECK;
int store_mcp_servers_list(struct store *s, struct arena *a, struct mcp_server_row **ret, size_t *ret_n,
                           struct err *e) MUST_CHECK;
/* These return -ENOENT SERVER_NOT_FOUND for an unknown name. */
int store_mcp_servers_get(struct store *s, struct arena *a, const char *name, struct mcp_server_row *ret,
                          struct err *e) MUST_CHECK;
int store_mcp_servers_delete(struct store *s, const char *name, struct err *e) MUST_CHECK;
int store_mcp_servers_set_enabled(struct store *s, const char *name, bool is_enabled, struct err *e) MUST_CHECK;
int store_mcp_servers_set_disabled_tools(struct store *s, const char *name, const char *json, struct err *e) MUST_CHECK;
int store_mcp_servers_set_accepted(struct store *s, const char *name, const char *hash, struct err *e) MUST_CHECK;
int store_mcp_servers_set_era(struct store *s, const char *name, const char *era, struct err *e) MUST_CHECK;
/* An empty slice forgets the authorization. */
int store_mcp_servers_set_authorization(struct store *s, const char *name, struct slice sealed,
                                        struct err *e) MUST_CHECK;

struct mcp_pin_row {
    const char *tool;
    const char *hash, *definition;                 /* at first sight, or as a person accepted it later */
    const char *offered_hash, *offered_definition; /* what the server names now, when it differs; else NULL */
};

int store_mcp_pins_list(struct store *s, struct arena *a, const char *server, struct mcp_pin_row **ret, size_t *ret_n,
                        struct err *e) MUST_CHECK;
/* Replaces the pins of the same tools, all or none. */
int store_mcp_pins_put(struct store *s, const char *server, const struct mcp_pin_row *rows, size_t n,
                       struct err *e) MUST_CHECK;
