/* The two eras of the protocol, as far as they differ. One table of functions each; no file but these two knows a
 * version by name. */
#pragma once

#include "mcp/client.h"

struct mcp_era_ops {
    enum mcp_era era;
    /* Begins to talk and fills client->about. -ENOPROTOOPT: the server belongs to the other era, as far as it can be
     * seen. wait_ms: how long the first response may take; 0: as long as `wait` allows. */
    int (*begin)(struct mcp_client *c, const struct net_wait *wait, int64_t wait_ms, struct err *e);
    /* Adds members of `_meta` to a message; NULL: none. */
    void (*add_meta)(const void *client, struct json_writer *w);
    const char *ping; /* the method */
    /* NULL: there is no such operation, and none is needed. */
    int (*log_level)(struct mcp_client *c, const struct mcp_call *call, const char *level, struct err *e);
    int (*roots_changed)(struct mcp_client *c, const struct net_wait *wait, struct err *e);
    int (*subscribe)(struct mcp_client *c, const struct mcp_call *call, const char *uri, bool is_on, struct err *e);
    bool has_inputs;   /* input_required */
    bool has_requests; /* the server may send requests */
};

extern const struct mcp_era_ops mcp_handshake_era, mcp_stateless_era;
