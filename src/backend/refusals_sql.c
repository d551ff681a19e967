#include "backend/refusals_sql.h"
#include "backend/refusals.h"
#include "base/util.h"

#include <string.h>

static int refuse_invalid(const struct err *why, struct err *e)
{
    return err_set(e, -EINVAL, "VALIDATION_ERROR", "The database cannot hold this value. %s", why->text);
}

static int refuse_large(const struct err *why, struct err *e)
{
    return err_set(e, -E2BIG, "TOO_LARGE", "A value is larger than its column allows. %s", why->text);
}

static int refuse_double(const struct err *why, struct err *e)
{
    return err_set(e, -EEXIST, "ALREADY_EXISTS", "A row with this id is there already");
}

static int refuse_rights(const struct err *why, struct err *e)
{
    return err_set(e, -EACCES, "STORE_DENIED", "%s: `hearth backend check` says what is missing", why->text);
}

static int refuse_unfit(const struct err *why, struct err *e)
{
    return err_set(e, -EINVAL, "TABLE_UNFIT", "%s: `hearth backend check` says what is missing", why->text);
}

static int refuse_read_only(const struct err *why, struct err *e)
{
    return err_set(e, -EROFS, "STORE_READ_ONLY", "%s", why->text);
}

static int refuse_full(const struct err *why, struct err *e)
{
    return err_set(e, -ENOSPC, "STORE_FULL", "%s", why->text);
}

static int refuse_busy(const struct err *why, struct err *e)
{
    return err_set(e, -EBUSY, "STORE_BUSY", "%s", why->text);
}

static int refuse_absent(const struct err *why, struct err *e)
{
    return err_set(e, -EAGAIN, "STORE_UNAVAILABLE", "%s", why->text);
}

/* The first row whose beginning fits counts (PostgreSQL, Appendix A). */
static const struct {
    const char *begin;
    int (*refuse)(const struct err *why, struct err *e);
} refusals[] = {
    { "23505", refuse_double }, { "23514", refuse_large },     { "54000", refuse_large }, { "22", refuse_invalid },
    { "42501", refuse_rights }, { "42703", refuse_unfit },     { "42804", refuse_unfit }, { "42883", refuse_unfit },
    { "23", refuse_invalid },   { "25006", refuse_read_only }, { "53100", refuse_full },  { "55P03", refuse_busy },
    { "57014", refuse_busy },   { "40", refuse_busy },         { "53", refuse_absent },   { "57P", refuse_absent },
};

int refusals_sqlstate(const char *sqlstate, const char *table, const struct err *why, struct err *e)
{
    if (table && strcmp(sqlstate, "42P01") == 0)
        return refusals_no_table(table, e);
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
        if (strncmp(sqlstate, refusals[i].begin, strlen(refusals[i].begin)) == 0)
            return refusals[i].refuse(why, e);
    return err_set(e, -EIO, "STORE_FAILED", "%s", why->text);
}

bool refusals_is_undone(const char *sqlstate)
{
    return strcmp(sqlstate, "40001") == 0 || strcmp(sqlstate, "40P01") == 0;
}
