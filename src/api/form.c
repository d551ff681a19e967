#include "api/form.h"

#include "base/percent.h"

#include <string.h>
#include <strings.h>

enum { MAX_BOUNDARY = 70 }; /* RFC 2046 section 5.1.1 */

static const char type[] = "multipart/form-data";

static int refuse(struct err *e, const char *rule)
{
    return err_set(e, -EINVAL, "BAD_FORM", "The body %s.", rule);
}

/* ---- parameters of headers (RFC 9110 section 5.6.6) ---- */

/* The value of `name="value"` or `name=value` behind a semicolon. False: not there. */
static bool parameter(struct slice text, const char *name, struct slice *ret)
{
    const char *at = text.p, *end = text.p + text.n;
    size_t n_name = strlen(name);

    while (at && (at = memchr(at, ';', (size_t)(end - at)))) {
        struct slice rest = slice_skip_blanks((struct slice){ at + 1, (size_t)(end - at - 1) });
        const char *close;

        at = rest.p;
        if (rest.n <= n_name || strncasecmp(rest.p, name, n_name) != 0 || rest.p[n_name] != '=')
            continue;
        rest = (struct slice){ rest.p + n_name + 1, rest.n - n_name - 1 };
        if (rest.n > 0 && rest.p[0] == '"') {
            close = memchr(rest.p + 1, '"', rest.n - 1);
            *ret = (struct slice){ rest.p + 1, close ? (size_t)(close - rest.p - 1) : 0 };
            return close != NULL;
        }
        close = memchr(rest.p, ';', rest.n);
        *ret = slice_trim((struct slice){ rest.p, close ? (size_t)(close - rest.p) : rest.n });
        return true;
    }
    return false;
}

bool form_is_type(const char *content_type)
{
    size_t n = sizeof(type) - 1;

    return content_type && strncasecmp(content_type, type, n) == 0 &&
           (!content_type[n] || strchr("; \t", content_type[n]));
}

/* ---- parts ---- */

static struct slice from(struct slice s, size_t n)
{
    return (struct slice){ s.p + n, s.n - n };
}

/* The bytes up to a CRLF; false: there is none. */
static bool take_line(struct slice *rest, struct slice *ret)
{
    const char *end = memmem(rest->p, rest->n, "\r\n", 2);

    if (!end)
        return false;
    *ret = (struct slice){ rest->p, (size_t)(end - rest->p) };
    *rest = from(*rest, ret->n + 2);
    return true;
}

static bool has_prefix(struct slice s, const char *prefix)
{
    return s.n >= strlen(prefix) && strncasecmp(s.p, prefix, strlen(prefix)) == 0;
}

/* The headers of a part up to its empty line. */
static int read_headers(struct slice *rest, struct form_part *part, struct err *e)
{
    static const char disposition[] = "content-disposition:";
    struct slice line, file_name;

    for (size_t i = 0; i < LIMIT_FORM_HEADERS; i++) {
        if (!take_line(rest, &line))
            return refuse(e, "ends within the headers of a part");
        if (line.n == 0)
            return part->name.n > 0 ? 0 : refuse(e, "has a part without a name");
        if (!has_prefix(line, disposition))
            continue;
        line = from(line, sizeof(disposition) - 1);
        if (!parameter(line, "name", &part->name))
            part->name.n = 0;
        if (part->name.n > LIMIT_FORM_NAME)
            return refuse(e, "has a part with too long a name");
        part->is_file = parameter(line, "filename", &file_name) || parameter(line, "filename*", &file_name);
    }
    return refuse(e, "has a part with too many headers");
}

/* Up to the next delimiter, which is left out. */
static int read_data(struct slice *rest, struct slice delimiter, struct form_part *part, struct err *e)
{
    const char *end = memmem(rest->p, rest->n, delimiter.p, delimiter.n);

    if (!end)
        return refuse(e, "ends before its last boundary");
    part->data = (struct slice){ rest->p, (size_t)(end - rest->p) };
    *rest = from(*rest, part->data.n + delimiter.n);
    return 0;
}

/* Behind a delimiter: 1 another part follows, 0 the end. */
static int after_delimiter(struct slice *rest, struct err *e)
{
    struct slice line;

    if (rest->n >= 2 && memcmp(rest->p, "--", 2) == 0)
        return 0;
    if (!take_line(rest, &line) || slice_trim(line).n > 0)
        return refuse(e, "has a boundary that ends neither its line nor the body");
    return 1;
}

static int read_parts(struct slice body, struct slice delimiter, struct form *form, struct err *e)
{
    const struct slice first = from(delimiter, 2); /* the body may begin with it, without a line before */
    struct slice rest = body;
    struct form_part before;
    int r = 0;

    if (body.n >= first.n && memcmp(body.p, first.p, first.n) == 0)
        rest = from(body, first.n);
    else
        r = read_data(&rest, delimiter, &before, e);
    if (r == 0)
        r = after_delimiter(&rest, e);
    while (r == 1) {
        struct form_part part = { .is_file = false };

        if (form->n == LIMIT_FORM_PARTS)
            return refuse(e, "has too many parts");
        r = read_headers(&rest, &part, e);
        if (r == 0)
            r = read_data(&rest, delimiter, &part, e);
        if (r < 0)
            return r;
        form->parts[form->n++] = part;
        r = after_delimiter(&rest, e);
    }
    return r;
}

int form_read(const char *content_type, struct slice body, struct form *ret, struct err *e)
{
    char delimiter[MAX_BOUNDARY + 4] = "\r\n--";
    struct slice boundary;

    ret->n = 0;
    if (body.n == 0)
        return refuse(e, "is empty");
    if (!parameter(slice_of(content_type), "boundary", &boundary) || boundary.n == 0 || boundary.n > MAX_BOUNDARY)
        return refuse(e, "has no boundary of 1 to 70 characters in its content-type");
    memcpy(delimiter + 4, boundary.p, boundary.n);
    return read_parts(body, (struct slice){ delimiter, boundary.n + 4 }, ret, e);
}

const struct form_part *form_find(const struct form *form, const char *name)
{
    for (size_t i = 0; i < form->n; i++)
        if (slice_eq_str(form->parts[i].name, name))
            return &form->parts[i];
    return NULL;
}

int form_fields(const struct form *form, const struct field *table, void *into, struct arena *a, struct err *e)
{
    struct buf query;
    int r;

    buf_init(&query, 4 * LIMIT_FORM_FIELDS);
    for (size_t i = 0; i < form->n; i++) {
        const struct form_part *part = &form->parts[i];

        if (part->is_file)
            continue;
        if (part->data.n + part->name.n > LIMIT_FORM_FIELDS)
            query.overflowed = true;
        else {
            buf_add_char(&query, '&');
            percent_encode(&query, part->name);
            buf_add_char(&query, '=');
            percent_encode(&query, part->data);
        }
    }
    r = query.overflowed ? refuse(e, "has fields that are too long")
                         : fields_read_query(table, buf_str(&query), into, a, e);
    buf_clear(&query);
    return r;
}
