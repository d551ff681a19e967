/* Internals of a connection, for the files of src/store only. */
#pragma once

#include "store/sql.h"
#include <sqlite3.h>

struct sql_cached {
    const char *sql;    /* borrowed literal: its address is the cache key */
    sqlite3_stmt *stmt; /* owned */
    bool is_taken;
};

struct sql_db {
    sqlite3 *handle;           /* owned; NULL when broken */
    struct sql_cached **cache; /* owned; open addressing, size a power of two */
    size_t cache_size, n_cached;
    struct err *why_broken; /* owned; NULL: usable */
    int r_broken;           /* the negative errno of why_broken */
};

/* A statement in use, until it is given back. */
struct sql_use {
    sqlite3_stmt *stmt;
    struct sql_cached *cached; /* borrowed; NULL: stmt is finalized when given back */
};

struct sql_rows {
    struct sql_db *db; /* borrowed */
    struct sql_use use;
};

/* A connection that could not be opened: every use fails with the reason. */
struct sql_db *sql_broken(int r, const struct err *why) MUST_CHECK;
bool sql_is_broken(const struct sql_db *db);

/* sql_clock.c: adds boot_id() and boot_ms() to a new connection; returns a code of SQLite. */
int sql_add_clock(struct sqlite3 *db);
