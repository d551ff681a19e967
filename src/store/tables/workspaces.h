/* Workspaces and their threads (tables workspaces, threads). The workspace "default" is made with the database. Any
 * thread; row texts live in the arena; the store sets id and created_at. */
#pragma once

#include "store/store.h"

#define WORKSPACE_DEFAULT "default"

struct workspace_row {
    int64_t id;
    const char *slug; /* unique */
    const char *name;
    const char *type; /* "default" unless given */
    const char *created_at;
};

struct thread_row {
    int64_t id, workspace_id;
    const char *slug; /* unique within its workspace */
    const char *name;
    const char *created_at;
    const char *owner; /* data scope of the caller whose session or tasks it is for; NULL: a person made it */
};

/* -EEXIST WORKSPACE_EXISTS; -E2BIG TOO_MANY_WORKSPACES beyond LIMIT_WORKSPACES. ret_id may be NULL. */
int store_workspaces_insert(struct store *s, const struct workspace_row *row, int64_t *ret_id,
                            struct err *e) MUST_CHECK;
/* -ENOENT WORKSPACE_NOT_FOUND. */
int store_workspaces_get_id(struct store *s, struct arena *a, int64_t id, struct workspace_row *ret,
                            struct err *e) MUST_CHECK;
int store_workspaces_get(struct store *s, struct arena *a, const char *slug, struct workspace_row *ret,
                         struct err *e) MUST_CHECK;
/* In order of id: the first is "default". */
int store_workspaces_list(struct store *s, struct arena *a, struct workspace_row **ret, size_t *ret_n,
                          struct err *e) MUST_CHECK;

/* row->workspace_id names the workspace (-ENOENT WORKSPACE_NOT_FOUND); -EEXIST THREAD_EXISTS;
 * -E2BIG TOO_MANY_THREADS beyond LIMIT_THREADS. ret_id may be NULL. */
int store_threads_insert(struct store *s, const struct thread_row *row, int64_t *ret_id, struct err *e) MUST_CHECK;
/* -ENOENT THREAD_NOT_FOUND. */
int store_threads_get(struct store *s, struct arena *a, int64_t workspace_id, const char *slug, struct thread_row *ret,
                      struct err *e) MUST_CHECK;
int store_threads_get_id(struct store *s, struct arena *a, int64_t id, struct thread_row *ret,
                         struct err *e) MUST_CHECK;
struct threads_list_request {
    int64_t workspace_id;
    int64_t limit; /* 0: LIMIT_LIST_DEFAULT */
    int64_t offset;
};
/* Newest first. */
int store_threads_list(struct store *s, struct arena *a, const struct threads_list_request *request,
                       struct thread_row **ret, size_t *ret_n, struct err *e) MUST_CHECK;
