/* The state of realtime.h, for its files only. Everything below `sockets` belongs to the hub's thread. */
#pragma once

#include "face/realtime.h"
#include "base/metrics.h"
#include "base/realtime_wire.h"
#include "backend/filter.h"
#include "backend/query.h"
#include "http/websocket.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

/* ---- queues between threads ---- */

enum rt_kind {
    RT_OPENED,
    RT_MESSAGE,
    RT_CLOSED,
    RT_CHANGE,
    RT_TABLES,
    RT_GAP,
    RT_BROADCAST,
    RT_END,
    RT_LISTEN,
    RT_UNLISTEN,
    RT_BRIDGE,
    RT_REMOTE,
    RT_MACHINES
};

/* What a subscription asks of the tables. */
struct rt_question {
    const char *schema, *name, *filter; /* "": no filter */
};

struct rt_item {
    STAILQ_ENTRY(rt_item) links;
    enum rt_kind kind;
    struct arena *arena; /* owned; of everything below */
    struct rt_socket *socket;
    bool is_binary;
    struct slice bytes;
    struct realtime_broadcast broadcast;
    struct rt_change *change;
    uint64_t serial; /* RT_TABLES: of the channel */
    struct rt_question *questions;
    size_t n_questions;
    struct backend_publications tables;
    int r;                              /* RT_TABLES, RT_MACHINES: of the question */
    const char *fault;                  /* RT_TABLES: what is wrong with a filter; NULL: nothing */
    struct backend_presences presences; /* RT_MACHINES */
};
STAILQ_HEAD(rt_items, rt_item);
TAILQ_HEAD(rt_channels, rt_channel);
TAILQ_HEAD(rt_metas, rt_meta);
TAILQ_HEAD(rt_sockets, rt_socket);
LIST_HEAD(rt_topics, rt_topic);
LIST_HEAD(rt_bridges, rt_bridge);
LIST_HEAD(rt_shapes, rt_shape);
LIST_HEAD(rt_machines, rt_machine);

struct rt_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct rt_items items;
    size_t n;
    bool is_closed;
};

void rt_queue_init(struct rt_queue *q);
void rt_queue_clear(struct rt_queue *q); /* frees the items */
/* Takes ownership; false when max items wait or the queue is closed, and the item is freed. max 0: any number. */
bool rt_queue_push(struct rt_queue *q, struct rt_item *item, size_t max);
/* NULL after wait_ms or when the queue is closed and empty; *ret_is_closed tells which. */
struct rt_item *rt_queue_pop(struct rt_queue *q, int64_t wait_ms, bool *ret_is_closed);
void rt_queue_close(struct rt_queue *q);
struct rt_item *rt_item_new(enum rt_kind kind) MUST_CHECK;
void rt_item_free(struct rt_item *item);

/* A table with columns of its own. Constant while it is shared between threads. */
struct rt_shape {
    LIST_ENTRY(rt_shape) links; /* of the rows' thread */
    atomic_int n_holders;
    struct arena *arena; /* owned; of everything below */
    const char *table;
    struct table_shape of;
    const char *columns; /* JSON, as members receive it */
    bool has_user;       /* its rows belong to users */
    int64_t read_ms;
};

/* A committed change: made by the backend's thread, completed and printed by the thread of the rows. */
struct rt_change {
    enum backend_op op;
    const char *table;  /* as the backend names it */
    const char *schema; /* "public" for a name without a schema */
    const char *name;
    bool is_lease_only;
    bool is_internal; /* of <abbr>_deletions: for the service role, by its name only */
    struct backend_row *new_row, *old_row;
    struct rt_shape *shape;   /* owned; NULL: the table has the columns of the Activities table */
    struct json_value record; /* with a shape: the row that filters are asked about */
    struct slice data;        /* JSON, as members receive it */
    bool is_cut;    /* too large to be sent whole: values of LIMIT_REALTIME_CUT_VALUE bytes only, with an error */
    size_t n_bytes; /* counted in n_change_bytes */
    char at[32];    /* when it came */
};

/* ---- sockets, channels, topics ---- */

struct rt_socket {
    TAILQ_ENTRY(rt_socket) links;
    struct realtime *rt;
    struct http_websocket *ws; /* owned reference */
    bool is_v2;
    struct face_caller caller; /* of the key it connected with */
    struct rt_channels channels;
    size_t n_channels;
    atomic_size_t n_pending, n_pending_bytes; /* messages that the hub has not handled */
    atomic_bool is_held;                      /* the loop has stopped reading */
};

struct rt_filter { /* one of n tests must match; none: every row does */
    const char *text;
    struct filter **activity, **own; /* of tables of activities (NULL: it can be none), of other tables */
    size_t n;
    const char *activity_fault; /* why one of them is NULL */
};

struct rt_binding { /* one subscription to changes */
    uint32_t id;
    unsigned ops;              /* mask of enum backend_op */
    const char *schema, *name; /* "*": every */
    struct rt_filter filter;
};

struct rt_channel {
    TAILQ_ENTRY(rt_channel) of_socket, of_topic, of_changes;
    struct arena *arena; /* owned; itself, too */
    struct rt_socket *socket;
    struct rt_topic *topic;
    uint64_t serial;
    const char *join_ref;
    struct face_caller caller;
    bool gets_own, wants_ack, has_presence, is_watching;
    const char *presence_key;
    struct rt_binding *bindings;
    size_t n_bindings;
    const char *fault;         /* what is wrong with the subscriptions: they receive nothing; else NULL */
    int64_t n_charged;         /* subscriptions taken from the budget */
    int64_t presence_since_ms; /* the window of LIMIT_PRESENCE_CALLS */
    size_t n_presence_calls;
};

struct rt_meta { /* what a member says of itself */
    TAILQ_ENTRY(rt_meta) links;
    struct rt_channel *channel; /* NULL: a machine of the backend */
    char *key;                  /* owned */
    uint64_t ref;
    char *fields; /* owned: the members of a JSON object, without its braces */
};

struct rt_topic {
    LIST_ENTRY(rt_topic) links;
    char *name; /* owned; with "realtime:" */
    bool is_private;
    struct rt_channels members;
    struct rt_metas present;
    size_t n_present_bytes;
};

struct rt_echo { /* a broadcast that the backend will give back */
    uint64_t mark;
    int64_t until_ms; /* 0: it came */
};

enum { RT_BUCKETS = 1024, RT_ECHOES = 1024 };

struct realtime {
    struct realtime_config config;
    pthread_mutex_t lock; /* guards keys */
    struct face_keys *keys;
    struct rt_queue hub, rows;
    pthread_t hub_thread, rows_thread;
    bool has_hub, has_rows, is_subscribed;
    atomic_bool is_ending, has_gap; /* has_gap: changes were dropped, and members were told */
    atomic_size_t n_bridged;        /* broadcasts that wait for the backend */
    struct rt_bridges bridges;      /* of the rows' thread */
    struct rt_shapes shapes;        /* of the rows' thread */
    size_t n_shapes;
    struct rt_machines machines;                           /* of the rows' thread */
    atomic_size_t n_watching;                              /* channels with subscriptions to changes */
    atomic_size_t n_broadcasts, n_changes, n_change_bytes; /* not yet delivered */
    struct metric *delivered, *dropped;                    /* changes */
    char *columns;                                         /* owned: JSON, of tables of activities */

    struct rt_sockets sockets;
    struct rt_channels watching;
    struct rt_topics topics[RT_BUCKETS];
    struct rt_echo echoes[RT_ECHOES]; /* a ring */
    size_t n_echoes;
    uint64_t last_serial, last_meta;
    int64_t tick_ms, machines_ms; /* when the machines are asked for again */
    bool is_reading_machines, is_machines_due, has_put_machines;
};

/* realtime.c */
int64_t rt_now_s(void);
void rt_send(struct rt_socket *s, const struct rt_message *m);
void rt_send_bytes(struct rt_socket *s, bool is_binary, struct slice message);
/* A frame made by websocket_write_message(). */
void rt_send_frame(struct rt_socket *s, struct slice frame);
/* A phx_reply; response is JSON. */
void rt_reply(struct rt_socket *s, const struct rt_message *to, bool is_ok, struct slice response);
void rt_reply_error(struct rt_socket *s, const struct rt_message *to, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Queues a copy for the hub; -EBUSY TOO_MANY_BROADCASTS. Any thread. */
int rt_queue_broadcast(struct realtime *rt, enum rt_kind kind, const struct realtime_broadcast *b,
                       struct err *e) MUST_CHECK;

/* realtime_channel.c */
void rt_handle(struct rt_socket *s, struct arena *a, const struct rt_message *m);
void rt_channel_leave(struct rt_channel *ch); /* freed */
void rt_system(struct rt_channel *ch, const char *extension, bool is_ok, const char *text);
/* Tells the reason, closes the channel and frees it. */
void rt_channel_fail(struct rt_channel *ch, const char *text);
void rt_topic_release(struct realtime *rt, struct rt_topic *t);
struct rt_topic *rt_topic_find(struct realtime *rt, struct slice name, bool is_private);
void rt_expire(struct realtime *rt);

/* realtime_changes.c */
int rt_bindings_read(struct rt_channel *ch, struct json_value config, struct err *e) MUST_CHECK;
/* The response to a join: the subscriptions as they came, with their ids. */
void rt_bindings_print(struct buf *out, const struct rt_channel *ch, struct json_value config);
void rt_watch(struct rt_channel *ch); /* from now on the channel receives changes */
/* Tells the channel, later, whether it receives changes. */
void rt_confirm(struct rt_channel *ch);
void rt_unwatch(struct rt_channel *ch);
void rt_tables_known(struct realtime *rt, const struct rt_item *item);
void rt_deliver_change(struct realtime *rt, struct rt_change *change);
void rt_deliver_gap(struct realtime *rt);
bool rt_is_named(const char *wanted, const char *name); /* wanted "*": every name */

bool rt_is_internal(const struct backend *b, const char *table); /* <abbr>_deletions */

/* realtime_filter.c */
/* -EINVAL INVALID_FILTER for what no table could have. An empty text: no filter. */
int rt_filter_read(struct arena *a, struct slice text, struct rt_filter *ret, struct err *e) MUST_CHECK;
/* -EINVAL INVALID_FILTER: the table has no such column, or the value is none of its type. */
int rt_filter_check(const struct rt_filter *f, const struct table_shape *shape, struct err *e) MUST_CHECK;
bool rt_filter_passes(const struct rt_filter *f, const struct rt_change *c);

/* realtime_shapes.c, on the thread of the rows. */
/* n_members: of a record that the shape should fit; 0: not known. *ret is owned. -EAGAIN: the database does not answer.
 */
int rt_shape_of(struct realtime *rt, const char *table, size_t n_members, struct rt_shape **ret,
                struct err *e) MUST_CHECK;
struct rt_shape *rt_shape_free(struct rt_shape *s); /* any thread; NULL is fine */
void rt_shapes_clear(struct realtime *rt);
void rt_questions_answer(struct realtime *rt, struct rt_item *item); /* RT_TABLES */

/* realtime_rows.c */
void rt_change_name(struct arena *a, struct rt_change *c); /* schema and name from table */
int rt_rows_start(struct realtime *rt, struct err *e) MUST_CHECK;
void rt_rows_stop(struct realtime *rt);
/* The answer comes as RT_TABLES. */
void rt_request_tables(struct realtime *rt, const struct rt_channel *ch);

/* realtime_broadcast.c */
void rt_take_broadcast(struct rt_channel *from, struct arena *a, const struct rt_message *m);
void rt_deliver_broadcast(struct realtime *rt, struct arena *a, const struct realtime_broadcast *b);

/* realtime_bridge.c */
bool rt_is_bridged(const struct rt_topic *t);
/* The topic has its first member, or none any more. */
void rt_bridge_change(struct realtime *rt, const struct rt_topic *t, bool is_wanted);
/* To the services of all machines; payload is JSON. topic_name: with "realtime:". */
void rt_bridge_send(struct realtime *rt, const char *topic_name, struct slice event, struct slice payload);
/* From the services, to the members. */
void rt_bridge_deliver(struct realtime *rt, struct arena *a, const struct realtime_broadcast *b);
/* On the thread of the rows: RT_LISTEN, RT_UNLISTEN, RT_BRIDGE. */
void rt_bridge_work(struct realtime *rt, const struct rt_item *item);
void rt_bridges_end(struct realtime *rt); /* when that thread has ended */

/* realtime_presence.c */
void rt_presence_message(struct rt_channel *ch, const struct rt_message *m);
void rt_presence_state(struct rt_channel *ch);
void rt_presence_gone(struct rt_channel *ch);
void rt_presence_clear(struct rt_topic *t); /* of a channel without members */
/* A machine of the backend is there, or says other things of itself; fields is taken over. */
void rt_presence_show(struct realtime *rt, struct rt_topic *t, const char *key, char *fields);
void rt_presence_hide(struct rt_topic *t, struct rt_meta *m); /* freed */

/* realtime_machines.c */
bool rt_is_of_machines(const struct realtime *rt, const struct rt_topic *t);
void rt_machines_tick(struct realtime *rt, bool is_due); /* is_due: something has changed */
void rt_machines_known(struct realtime *rt, const struct rt_item *item);
void rt_machines_work(struct realtime *rt, struct rt_item *item); /* on the thread of the rows: RT_MACHINES */
void rt_machines_end(struct realtime *rt);                        /* when that thread has ended */
