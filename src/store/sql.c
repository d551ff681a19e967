#include "store/sql.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/percent.h"
#include "base/stall.h"
#include "store/sql_private.h"
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SQL_CACHE_FIRST = 64, SQL_BUSY_TIMEOUT_MS = 5000, SQL_FIRST_PAGES = 4 };

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Disables memory statistics: they take a process-wide lock in every allocation of SQLite, and no code reads them. A
 * connection begins with room for few pages instead of 20 (85 KiB): most threads read little. */
static void configure_library(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, SQL_FIRST_PAGES);
}

/* SQLite gives -wal and -shm the mode of the database file, so only this file must be made. A file that exists is not
 * opened: closing it would release the locks of SQLite's connections in this process (fcntl(2)), and the next program
 * that closes the database would take itself for the last one and remove the log. */
static int make_private_file(const char *path, struct err *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct stat st;

    if (fd >= 0) {
        close(fd);
        return 0;
    }
    if (errno == EEXIST && lstat(path, &st) == 0) {
        if (!S_ISLNK(st.st_mode) && faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0)
            return 0;
        errno = S_ISLNK(st.st_mode) ? ELOOP : errno;
    }
    return err_errno(e, errno, "cannot open the database %s", path);
}

/* The first change to WAL fails immediately, without calling the busy handler, while another process makes the same
 * change. */
static int enter_wal(struct sql_db *db, int64_t wait_ms, struct err *e)
{
    const struct timespec pause = { .tv_nsec = 5000000 };
    int64_t end = clock_mono_ms() + wait_ms;
    int code;

    while ((code = sqlite3_exec(db->handle, "PRAGMA journal_mode = WAL", NULL, NULL, NULL)) != SQLITE_OK) {
        if ((code & 0xff) != SQLITE_BUSY || clock_mono_ms() >= end)
            return sql_fail(db, e, "cannot use write-ahead logging");
        nanosleep(&pause, NULL);
    }
    return 0;
}

#define WRITER_PRAGMAS "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY"

static int configure(struct sql_db *db, const struct sql_options *o, struct err *e)
{
    int64_t wait_ms = o->busy_timeout_ms > 0 ? o->busy_timeout_ms : SQL_BUSY_TIMEOUT_MS;
    int r;

    sqlite3_extended_result_codes(db->handle, 1);
    sqlite3_busy_timeout(db->handle, (int)wait_ms);
    if (o->is_readonly) /* one for each thread: small page caches, backed by the kernel's cache */
        return sql_script(db, "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -512", e);
    r = enter_wal(db, wait_ms, e);
    if (r < 0)
        return r;
    return sql_script(db, o->is_schema_trusted ? WRITER_PRAGMAS : WRITER_PRAGMAS "; PRAGMA trusted_schema = OFF", e);
}

/* A path as a URI (sqlite.org/uri.html). */
static char *immutable_uri(struct arena *a, const char *path)
{
    struct buf out;

    buf_init(&out, KIB(64));
    buf_add_str(&out, "file:");
    percent_encode(&out, slice_of(path));
    buf_add_str(&out, "?immutable=1");
    return buf_to_arena(&out, a);
}

static int open_handle(struct sql_db *db, const char *path, const struct sql_options *o, struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new_sized(512);
    int flags = SQLITE_OPEN_NOMUTEX | (o->is_readonly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
                (o->is_immutable ? SQLITE_OPEN_URI : 0);
    const char *name = o->is_immutable ? immutable_uri(a, path) : path;
    int r;

    r = o->is_readonly ? 0 : make_private_file(path, e);
    if (r < 0)
        return r;
    pthread_once(&once, configure_library);
    if (sqlite3_open_v2(name, &db->handle, flags, NULL) != SQLITE_OK)
        return sql_fail(db, e, path);
    if (sql_add_clock(db->handle) != SQLITE_OK)
        return sql_fail(db, e, path);
    r = configure(db, o, e);
    return r < 0 && r != -EMFILE ? err_prefix(e, r, "%s", path) : r; /* a client reads the text of -EMFILE */
}

int sql_open(const char *path, const struct sql_options *o, struct sql_db **ret, struct err *e)
{
    static const struct sql_options defaults;
    struct sql_db *db = xcalloc(1, sizeof(*db));
    int r;

    r = open_handle(db, path, o ? o : &defaults, e);
    if (r < 0) {
        sql_close(db);
        return r;
    }
    *ret = db;
    return 0;
}

int sql_open_memory(struct sql_db **ret, struct err *e)
{
    struct sql_db *db = xcalloc(1, sizeof(*db));
    int r = 0;

    pthread_once(&once, configure_library);
    if (sqlite3_open_v2(":memory:", &db->handle, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                        NULL) != SQLITE_OK ||
        sql_add_clock(db->handle) != SQLITE_OK)
        r = sql_fail(db, e, "a database in memory");
    if (r < 0) {
        sql_close(db);
        return r;
    }
    *ret = db;
    return 0;
}

struct sql_db *sql_broken(int r, const struct err *why)
{
    struct sql_db *db = xcalloc(1, sizeof(*db));

    db->why_broken = xcalloc(1, sizeof(*db->why_broken));
    *db->why_broken = *why;
    db->r_broken = r;
    return db;
}

bool sql_is_broken(const struct sql_db *db)
{
    return db->why_broken != NULL;
}

struct sql_db *sql_close(struct sql_db *db)
{
    if (!db)
        return NULL;
    for (size_t i = 0; i < db->cache_size; i++) {
        if (db->cache[i])
            sqlite3_finalize(db->cache[i]->stmt);
        free(db->cache[i]);
    }
    free(db->cache);
    sqlite3_close_v2(db->handle);
    free(db->why_broken);
    free(db);
    return NULL;
}

struct sqlite3 *sql_handle(struct sql_db *db)
{
    return db->handle;
}

int64_t sql_changes(struct sql_db *db)
{
    return sqlite3_changes64(db->handle);
}

int64_t sql_last_id(struct sql_db *db)
{
    return sqlite3_last_insert_rowid(db->handle);
}

int sql_script(struct sql_db *db, const char *sql, struct err *e)
{
    if (sqlite3_exec(db->handle, sql, NULL, NULL, NULL) != SQLITE_OK)
        return sql_fail(db, e, "the database refused a statement");
    return 0;
}

/* --- statements --- */

static size_t slot_of(struct sql_cached *const *cache, size_t size, const char *sql)
{
    size_t i = ((uintptr_t)sql * UINT64_C(0x9E3779B97F4A7C15)) >> 32;

    for (i &= size - 1; cache[i] && cache[i]->sql != sql; i = (i + 1) & (size - 1))
        ;
    return i;
}

static void grow_cache(struct sql_db *db)
{
    size_t size = db->cache_size ? 2 * db->cache_size : SQL_CACHE_FIRST;
    struct sql_cached **cache = xcalloc(size, sizeof(struct sql_cached *));

    for (size_t i = 0; i < db->cache_size; i++)
        if (db->cache[i])
            cache[slot_of(cache, size, db->cache[i]->sql)] = db->cache[i];
    free(db->cache);
    db->cache = cache;
    db->cache_size = size;
}

static int prepare(struct sql_db *db, const char *sql, unsigned flags, sqlite3_stmt **ret, struct err *e)
{
    int64_t began_us = clock_mono_us();
    int code;

    if (db->why_broken)
        return err_set(e, db->r_broken, db->why_broken->code, "%s", db->why_broken->text);
    code = sqlite3_prepare_v3(db->handle, sql, -1, flags, ret, NULL);
    stall_excuse(clock_mono_us() - began_us);
    if (code != SQLITE_OK)
        return sql_fail(db, e, "the database refused a statement");
    return 0;
}

static int find_cached(struct sql_db *db, const char *sql, struct sql_cached **ret, struct err *e)
{
    sqlite3_stmt *stmt = NULL;
    size_t slot;
    int r;

    if (2 * db->n_cached >= db->cache_size)
        grow_cache(db);
    slot = slot_of(db->cache, db->cache_size, sql);
    if (!db->cache[slot]) {
        r = prepare(db, sql, SQLITE_PREPARE_PERSISTENT, &stmt, e);
        if (r < 0)
            return r;
        db->cache[slot] = xcalloc(1, sizeof(struct sql_cached));
        *db->cache[slot] = (struct sql_cached){ .sql = sql, .stmt = stmt };
        db->n_cached++;
    }
    *ret = db->cache[slot];
    assert(strcmp(sqlite3_sql((*ret)->stmt), sql) == 0); /* a reused buffer is not a literal */
    return 0;
}

/* Takes the cached statement of this literal, or an uncached one while that is in use. */
static int take_cached(struct sql_db *db, const char *sql, struct sql_use *ret, struct err *e)
{
    struct sql_cached *cached = NULL;
    int r = find_cached(db, sql, &cached, e);

    if (r < 0)
        return r;
    if (cached->is_taken)
        return prepare(db, sql, 0, &ret->stmt, e);
    cached->is_taken = true;
    *ret = (struct sql_use){ .stmt = cached->stmt, .cached = cached };
    return 0;
}

static void give_back(struct sql_use *use)
{
    int64_t began_us = clock_mono_us();

    if (use->cached) {
        use->cached->is_taken = false;
        sqlite3_reset(use->stmt);
        sqlite3_clear_bindings(use->stmt);
    } else {
        sqlite3_finalize(use->stmt);
    }
    stall_excuse(clock_mono_us() - began_us);
}

/* --- binds --- */

static int bind_slice(sqlite3_stmt *stmt, int at, struct slice s, bool is_blob, sqlite3_destructor_type keep)
{
    if (!s.p)
        return sqlite3_bind_null(stmt, at);
    if (is_blob)
        return sqlite3_bind_blob64(stmt, at, s.p, s.n, keep);
    return sqlite3_bind_text64(stmt, at, s.p, s.n, keep, SQLITE_UTF8);
}

static int bind_one(sqlite3_stmt *stmt, int at, char letter, va_list *args, sqlite3_destructor_type keep)
{
    switch (letter) {
    case 's':
        return bind_slice(stmt, at, slice_of(va_arg(*args, const char *)), false, keep);
    case 'S':
        return bind_slice(stmt, at, va_arg(*args, struct slice), false, keep);
    case 'b':
        return bind_slice(stmt, at, va_arg(*args, struct slice), true, keep);
    case 'i':
        return sqlite3_bind_int64(stmt, at, va_arg(*args, int64_t));
    case 'd':
        return sqlite3_bind_double(stmt, at, va_arg(*args, double));
    case 'n':
        return sqlite3_bind_null(stmt, at);
    default:
        return SQLITE_MISUSE;
    }
}

static int bind_all(struct sql_db *db, sqlite3_stmt *stmt, const char *binds, va_list args,
                    sqlite3_destructor_type keep, struct err *e)
{
    va_list copy;
    int n = binds ? (int)strlen(binds) : 0, code = SQLITE_OK;

    assert(n == sqlite3_bind_parameter_count(stmt));
    va_copy(copy, args);
    for (int i = 0; i < n && code == SQLITE_OK; i++)
        code = bind_one(stmt, i + 1, binds[i], &copy, keep);
    va_end(copy);
    assert(code != SQLITE_MISUSE);
    return code == SQLITE_OK ? 0 : sql_fail(db, e, "a value does not fit the database");
}

/* --- execution --- */

static int run_to_end(struct sql_db *db, sqlite3_stmt *stmt, struct err *e)
{
    int64_t began_us = clock_mono_us();
    int code;

    while ((code = sqlite3_step(stmt)) == SQLITE_ROW)
        ;
    stall_excuse(clock_mono_us() - began_us);
    return code == SQLITE_DONE ? 0 : sql_fail(db, e, "the database refused a change");
}

static int exec_use(struct sql_db *db, struct sql_use *use, const char *binds, va_list args, struct err *e)
{
    int r = bind_all(db, use->stmt, binds, args, SQLITE_STATIC, e);

    if (r == 0)
        r = run_to_end(db, use->stmt, e);
    give_back(use);
    return r;
}

int sql_vexec(struct sql_db *db, struct err *e, const char *sql, const char *binds, va_list args)
{
    struct sql_use use = { 0 };
    int r = take_cached(db, sql, &use, e);

    return r < 0 ? r : exec_use(db, &use, binds, args, e);
}

int sql_exec(struct sql_db *db, struct err *e, const char *sql, const char *binds, ...)
{
    va_list args;
    int r;

    va_start(args, binds);
    r = sql_vexec(db, e, sql, binds, args);
    va_end(args);
    return r;
}

int sql_exec_text(struct sql_db *db, struct err *e, const char *sql, const char *binds, ...)
{
    struct sql_use use = { 0 };
    va_list args;
    int r = prepare(db, sql, 0, &use.stmt, e);

    if (r < 0)
        return r;
    va_start(args, binds);
    r = exec_use(db, &use, binds, args, e);
    va_end(args);
    return r;
}

/* Takes ownership of use. Values are copied, because the rows outlive the caller's arguments. */
static int start_rows(struct sql_db *db, struct sql_use *use, struct sql_rows **ret, const char *binds, va_list args,
                      struct err *e)
{
    int r = bind_all(db, use->stmt, binds, args, SQLITE_TRANSIENT, e);

    if (r < 0) {
        give_back(use);
        return r;
    }
    sql_rows_endp(ret);
    *ret = xcalloc(1, sizeof(**ret));
    **ret = (struct sql_rows){ .db = db, .use = *use };
    return 0;
}

int sql_query(struct sql_db *db, struct sql_rows **ret, struct err *e, const char *sql, const char *binds, ...)
{
    struct sql_use use = { 0 };
    va_list args;
    int r = take_cached(db, sql, &use, e);

    if (r < 0)
        return r;
    va_start(args, binds);
    r = start_rows(db, &use, ret, binds, args, e);
    va_end(args);
    return r;
}

int sql_query_text(struct sql_db *db, struct sql_rows **ret, struct err *e, const char *sql, const char *binds, ...)
{
    struct sql_use use = { 0 };
    va_list args;
    int r = prepare(db, sql, 0, &use.stmt, e);

    if (r < 0)
        return r;
    va_start(args, binds);
    r = start_rows(db, &use, ret, binds, args, e);
    va_end(args);
    return r;
}

static int bind_value(sqlite3_stmt *stmt, int at, const struct sql_value *v)
{
    switch (v->letter) {
    case 'S':
    case 'b':
        return bind_slice(stmt, at, v->text, v->letter == 'b', SQLITE_TRANSIENT);
    case 'i':
        return sqlite3_bind_int64(stmt, at, v->i);
    case 'd':
        return sqlite3_bind_double(stmt, at, v->d);
    default:
        return sqlite3_bind_null(stmt, at);
    }
}

int sql_query_values(struct sql_db *db, struct sql_rows **ret, struct err *e, const char *sql,
                     const struct sql_value *values, size_t n)
{
    struct sql_use use = { 0 };
    int r = prepare(db, sql, 0, &use.stmt, e), code = SQLITE_OK;

    if (r < 0)
        return r;
    assert((int)n == sqlite3_bind_parameter_count(use.stmt));
    for (size_t i = 0; i < n && code == SQLITE_OK; i++)
        code = bind_value(use.stmt, (int)i + 1, &values[i]);
    if (code != SQLITE_OK) {
        r = sql_fail(db, e, "a value does not fit the database");
        give_back(&use);
        return r;
    }
    sql_rows_endp(ret);
    *ret = xcalloc(1, sizeof(**ret));
    **ret = (struct sql_rows){ .db = db, .use = use };
    return 0;
}

int sql_again(struct sql_rows *rows, struct err *e, const char *binds, ...)
{
    va_list args;
    int r;

    sqlite3_reset(rows->use.stmt); /* returns the failure of the last step, which sql_step() reported */
    va_start(args, binds);
    r = bind_all(rows->db, rows->use.stmt, binds, args, SQLITE_TRANSIENT, e);
    va_end(args);
    return r;
}

int sql_step(struct sql_rows *rows, struct err *e)
{
    int64_t began_us = clock_mono_us();
    int code = sqlite3_step(rows->use.stmt);

    stall_excuse(clock_mono_us() - began_us);
    switch (code) {
    case SQLITE_ROW:
        return 1;
    case SQLITE_DONE:
        return 0;
    default:
        return sql_fail(rows->db, e, "the database could not read");
    }
}

void sql_rows_endp(struct sql_rows **rows)
{
    if (!*rows)
        return;
    give_back(&(*rows)->use);
    free(*rows);
    *rows = NULL;
}

/* --- columns --- */

char *sql_text(struct sql_rows *rows, struct arena *a, int column)
{
    const unsigned char *text = sqlite3_column_text(rows->use.stmt, column);

    return text ? arena_strndup(a, (const char *)text, (size_t)sqlite3_column_bytes(rows->use.stmt, column)) : NULL;
}

struct slice sql_blob(struct sql_rows *rows, struct arena *a, int column)
{
    const void *bytes = sqlite3_column_blob(rows->use.stmt, column);
    size_t n = (size_t)sqlite3_column_bytes(rows->use.stmt, column);

    return bytes ? (struct slice){ memcpy(arena_alloc(a, n + 1), bytes, n), n } : (struct slice){ 0 };
}

int64_t sql_int(struct sql_rows *rows, int column)
{
    return sqlite3_column_int64(rows->use.stmt, column);
}

bool sql_is_null(struct sql_rows *rows, int column)
{
    return sqlite3_column_type(rows->use.stmt, column) == SQLITE_NULL;
}

enum sql_kind sql_kind_of(struct sql_rows *rows, int column)
{
    switch (sqlite3_column_type(rows->use.stmt, column)) {
    case SQLITE_INTEGER:
        return SQL_INT;
    case SQLITE_FLOAT:
        return SQL_REAL;
    case SQLITE_TEXT:
        return SQL_TEXT;
    case SQLITE_BLOB:
        return SQL_BLOB;
    default:
        return SQL_NULL;
    }
}

double sql_double(struct sql_rows *rows, int column)
{
    return sqlite3_column_double(rows->use.stmt, column);
}

struct slice sql_peek(struct sql_rows *rows, int column)
{
    const unsigned char *text = sqlite3_column_text(rows->use.stmt, column);

    return (struct slice){ (const char *)text, (size_t)sqlite3_column_bytes(rows->use.stmt, column) };
}
