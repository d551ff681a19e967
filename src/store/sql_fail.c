#include "store/sql_private.h"

static const struct {
    int code;
    int errno_value;
    const char *name;
} failures[] = {
    { SQLITE_CONSTRAINT_UNIQUE, EEXIST, "ALREADY_EXISTS" },
    { SQLITE_CONSTRAINT_PRIMARYKEY, EEXIST, "ALREADY_EXISTS" },
    { SQLITE_CONSTRAINT_ROWID, EEXIST, "ALREADY_EXISTS" },
    { SQLITE_CONSTRAINT_FOREIGNKEY, ENOENT, "NOT_FOUND" },
    { SQLITE_CONSTRAINT_TRIGGER, EPERM, "STORE_REFUSED" },
    { SQLITE_CONSTRAINT, EEXIST, "STORE_ERROR" },
    { SQLITE_BUSY, EBUSY, "STORE_BUSY" },
    { SQLITE_LOCKED, EBUSY, "STORE_BUSY" },
    { SQLITE_FULL, ENOSPC, "STORE_FULL" },
    { SQLITE_IOERR_SHMSIZE, ENOSPC, "STORE_FULL" }, /* no room for the index of the write-ahead log */
    { SQLITE_NOMEM, ENOMEM, "OUT_OF_MEMORY" },
    { SQLITE_TOOBIG, E2BIG, "TOO_LARGE" },
    { SQLITE_READONLY, EROFS, "STORE_READ_ONLY" },
    { SQLITE_INTERRUPT, EINTR, "STORE_ERROR" },
    { SQLITE_CORRUPT, EUCLEAN, "STORE_DAMAGED" },
    { SQLITE_NOTADB, EUCLEAN, "STORE_DAMAGED" },
};

/* A file of the database that could not be opened because no descriptor was free. */
static bool lacks_files(const struct sql_db *db, int code)
{
    int error = db->handle ? sqlite3_system_errno(db->handle) : 0;
    bool is_of_file = (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_IOERR;

    return is_of_file && (error == EMFILE || error == ENFILE);
}

int sql_fail(struct sql_db *db, struct err *e, const char *what)
{
    int code = db->handle ? sqlite3_extended_errcode(db->handle) : SQLITE_NOMEM;
    const char *message = db->handle ? sqlite3_errmsg(db->handle) : "out of memory";

    if (lacks_files(db, code))
        return err_set(e, -EMFILE, "TOO_FEW_FILES",
                       "The service has no descriptor free for its database: try again in a moment, or raise the limit "
                       "(`ulimit -n`).");
    for (size_t i = 0; i < ARRAY_SIZE(failures); i++)
        if (failures[i].code == code || failures[i].code == (code & 0xff))
            return err_set(e, -failures[i].errno_value, failures[i].name, "%s: %s", what, message);
    return err_set(e, -EIO, "STORE_ERROR", "%s: %s", what, message);
}
