#include "http/head.h"
#include "base/limits.h"
#include "http/list.h"
#include "http/target.h"

#include <string.h>
#include <strings.h>

enum { REQUEST_LINE_ROOM = 64 }; /* method, version and spaces in addition to the target */

enum { HAS_HOST = 1, HAS_LENGTH = 2, HAS_CODING = 4, HAS_CLOSE = 8, HAS_KEEP_ALIVE = 16 };

struct reading {
    struct http_request *request;
    struct http_framing *framing;
    const char *authority; /* of an absolute-form target, else NULL */
    const char *host;
    unsigned has;
};

/* RFC 9110 section 5.6.2: a token character in lower case; 0 for every other byte. */
static unsigned char token_char(char c)
{
    static const unsigned char marks[128] = {
        ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1, ['&'] = 1, ['\''] = 1, ['*'] = 1, ['+'] = 1,
        ['-'] = 1, ['.'] = 1, ['^'] = 1, ['_'] = 1, ['`'] = 1, ['|'] = 1,  ['~'] = 1,
    };
    unsigned char byte = (unsigned char)c;

    if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9'))
        return byte;
    if (byte >= 'A' && byte <= 'Z')
        return byte + ('a' - 'A');
    return byte < 128 && marks[byte] ? byte : 0;
}

static enum http_refusal check_unfinished(const struct http_head_scan *scan, struct slice bytes)
{
    if (bytes.n > 0 && !token_char(bytes.p[0]))
        return REFUSE_REQUEST_LINE;
    if (scan->n_lines == 0 && bytes.n > LIMIT_TARGET_BYTES + REQUEST_LINE_ROOM)
        return REFUSE_TARGET_LENGTH;
    return bytes.n >= LIMIT_HEADER_BYTES ? REFUSE_HEADER_BYTES : REFUSE_NONE;
}

enum http_refusal http_head_scan(struct http_head_scan *scan, struct slice bytes, size_t *ret_bytes)
{
    const char *end;

    *ret_bytes = 0;
    while ((end = memchr(bytes.p + scan->looked_at, '\n', bytes.n - scan->looked_at))) {
        size_t at = (size_t)(end - bytes.p), line_bytes = at - scan->line_start;

        scan->looked_at = scan->line_start = at + 1;
        if (line_bytes == 0 || end[-1] != '\r')
            return REFUSE_LINE_END;
        if (at >= LIMIT_HEADER_BYTES)
            return REFUSE_HEADER_BYTES;
        if (line_bytes == 1) {
            *ret_bytes = scan->n_lines > 0 ? at + 1 : 0;
            return scan->n_lines > 0 ? REFUSE_NONE : REFUSE_REQUEST_LINE;
        }
        if (++scan->n_lines > LIMIT_HEADERS + 1)
            return REFUSE_HEADER_COUNT;
    }
    scan->looked_at = bytes.n;
    return check_unfinished(scan, bytes);
}

/* Takes the next line from text: ends it with NUL and moves text past it. http_head_scan() has checked every CR LF. */
static char *next_line(char **text, size_t *ret_bytes)
{
    char *line = *text, *end = strchr(line, '\n');

    if (!end || end == line || end[-1] != '\r')
        return NULL; /* a NUL byte inside the line hides its end */
    end[-1] = '\0';
    *ret_bytes = (size_t)(end - 1 - line);
    *text = end + 1;
    return line;
}

static enum http_refusal take_method(const char *name, struct http_request *ret)
{
    for (const char *c = name; *c; c++)
        if (!token_char(*c))
            return REFUSE_REQUEST_LINE;
    ret->is_head = strcmp(name, "HEAD") == 0;
    if (ret->is_head)
        name = "GET";
    for (enum http_method m = 0; m < HTTP_METHODS; m++) {
        if (strcmp(name, http_method_name(m)) == 0) {
            ret->method = m;
            return REFUSE_NONE;
        }
    }
    return REFUSE_METHOD;
}

static enum http_refusal take_version(const char *version, struct http_framing *framing)
{
    if (strlen(version) != 8 || strncmp(version, "HTTP/", 5) != 0 || version[6] != '.' || version[5] < '0' ||
        version[5] > '9' || version[7] < '0' || version[7] > '9')
        return REFUSE_REQUEST_LINE;
    framing->is_http10 = strcmp(version, "HTTP/1.0") == 0;
    return framing->is_http10 || strcmp(version, "HTTP/1.1") == 0 ? REFUSE_NONE : REFUSE_VERSION;
}

static enum http_refusal read_request_line(struct reading *now, struct arena *a, char *line)
{
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
    enum http_refusal why;

    if (!version || target == line || version == target + 1)
        return REFUSE_REQUEST_LINE;
    *target++ = '\0';
    *version++ = '\0';
    why = take_version(version, now->framing);
    if (!why)
        why = take_method(line, now->request);
    if (!why && strlen(target) > LIMIT_TARGET_BYTES)
        why = REFUSE_TARGET_LENGTH;
    return why ? why : http_target_parse(a, target, now->request, &now->authority);
}

static enum http_refusal take_host(struct reading *now, const char *value)
{
    if (now->has & HAS_HOST)
        return REFUSE_HOST_TWICE;
    now->has |= HAS_HOST;
    now->host = value;
    for (const char *c = value; *c; c++)
        if (!strchr("-._:[]%", *c) && !(*c >= '0' && *c <= '9') && !((*c | 32) >= 'a' && (*c | 32) <= 'z'))
            return REFUSE_HOST;
    return REFUSE_NONE;
}

/* RFC 9112 section 6.3: everything except one plain number is refused. */
static enum http_refusal take_length(struct reading *now, const char *value)
{
    size_t length = 0;

    if (now->has & HAS_LENGTH)
        return REFUSE_LENGTH_TWICE;
    now->has |= HAS_LENGTH;
    if (!*value)
        return REFUSE_LENGTH;
    for (; *value; value++) {
        if (*value < '0' || *value > '9')
            return REFUSE_LENGTH;
        length = length > SIZE_MAX / 32 ? SIZE_MAX : length * 10 + (size_t)(*value - '0');
    }
    now->framing->content_length = length;
    return REFUSE_NONE;
}

static enum http_refusal take_coding(struct reading *now, const char *value)
{
    if (now->has & HAS_CODING)
        return REFUSE_CODING_TWICE;
    now->has |= HAS_CODING;
    now->framing->is_chunked = strcasecmp(value, "chunked") == 0;
    return now->framing->is_chunked ? REFUSE_NONE : REFUSE_CODING;
}

static enum http_refusal take_connection(struct reading *now, const char *value)
{
    struct slice rest = slice_of(value);

    while (rest.n > 0) {
        struct slice option = http_list_next(&rest, ',');

        if (http_list_item_is(option, "close"))
            now->has |= HAS_CLOSE;
        if (http_list_item_is(option, "keep-alive"))
            now->has |= HAS_KEEP_ALIVE;
    }
    return REFUSE_NONE;
}

static enum http_refusal take_expectation(struct reading *now, const char *value)
{
    now->framing->expects_continue = strcasecmp(value, "100-continue") == 0;
    return now->framing->expects_continue ? REFUSE_NONE : REFUSE_EXPECTATION;
}

/* A client's id with invalid characters is ignored: the connection makes an id for the request. */
static enum http_refusal take_request_id(struct reading *now, const char *value)
{
    size_t n = strlen(value);

    if (n == 0 || n >= sizeof(now->request->id))
        return REFUSE_NONE;
    for (const char *c = value; *c; c++)
        if (!token_char(*c) || strchr("!#$%&'*+^`|~", *c))
            return REFUSE_NONE;
    memcpy(now->request->id, value, n + 1);
    return REFUSE_NONE;
}

static const struct {
    struct slice name;
    enum http_refusal (*take)(struct reading *now, const char *value);
} known_headers[] = {
    { SLICE_LIT("host"), take_host },
    { SLICE_LIT("content-length"), take_length },
    { SLICE_LIT("transfer-encoding"), take_coding },
    { SLICE_LIT("connection"), take_connection },
    { SLICE_LIT("expect"), take_expectation },
    { SLICE_LIT("x-request-id"), take_request_id },
};

static bool has_control(const char *value, size_t n)
{
    bool has = false;

    for (size_t i = 0; i < n; i++)
        has |= ((unsigned char)value[i] < 0x20 && value[i] != '\t') || value[i] == 0x7f;
    return has;
}

/* Splits "Name: value" in place; the name becomes lower case, blanks around the value are removed. */
static enum http_refusal split_header(char *line, size_t line_bytes, struct http_header *ret, size_t *ret_name_bytes)
{
    size_t n = 0;
    char *value, *end = line + line_bytes;

    if (line[0] == ' ' || line[0] == '\t')
        return REFUSE_HEADER_FOLDED;
    for (unsigned char c; (c = token_char(line[n])); n++)
        line[n] = (char)c;
    if (n == 0 || line[n] != ':')
        return REFUSE_HEADER_NAME;
    line[n] = '\0';
    value = line + n + 1;
    value += strspn(value, " \t");
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    if (has_control(value, (size_t)(end - value)))
        return REFUSE_HEADER_VALUE;
    *ret = (struct http_header){ line, value };
    *ret_name_bytes = n;
    return REFUSE_NONE;
}

static enum http_refusal read_header(struct reading *now, char *line, size_t line_bytes)
{
    struct http_header *header = &now->request->headers[now->request->n_headers];
    size_t name_bytes = 0;
    enum http_refusal why = split_header(line, line_bytes, header, &name_bytes);

    if (why)
        return why;
    now->request->n_headers++;
    for (size_t i = 0; i < ARRAY_SIZE(known_headers); i++)
        if (slice_eq(known_headers[i].name, (struct slice){ header->name, name_bytes }))
            return known_headers[i].take(now, header->value);
    return REFUSE_NONE;
}

/* Checks that need all headers together (RFC 9112 sections 3.2, 6.1 and 9.3). */
static enum http_refusal conclude(struct reading *now)
{
    struct http_framing *framing = now->framing;

    if (!now->host && !framing->is_http10)
        return REFUSE_HOST_MISSING;
    if (now->authority && now->host && strcasecmp(now->authority, now->host) != 0)
        return REFUSE_HOST_DIFFERS;
    if ((now->has & HAS_LENGTH) && (now->has & HAS_CODING))
        return REFUSE_LENGTH_AND_CODING;
    if ((now->has & HAS_CODING) && framing->is_http10)
        return REFUSE_CODING_VERSION;
    framing->keep_alive = !(now->has & HAS_CLOSE) && (!framing->is_http10 || (now->has & HAS_KEEP_ALIVE));
    framing->expects_continue &= !framing->is_http10;
    return REFUSE_NONE;
}

enum http_refusal http_head_parse(struct arena *a, char *text, const struct http_head_scan *scan,
                                  struct http_request *ret, struct http_framing *ret_framing)
{
    struct reading now = { .request = ret, .framing = ret_framing };
    size_t line_bytes = 0;
    char *line = next_line(&text, &line_bytes);
    enum http_refusal why = line ? read_request_line(&now, a, line) : REFUSE_REQUEST_LINE;

    ret->headers = arena_array(a, scan->n_lines, sizeof(*ret->headers));
    for (size_t i = 1; i < scan->n_lines && !why; i++) {
        line = next_line(&text, &line_bytes);
        why = line ? read_header(&now, line, line_bytes) : REFUSE_HEADER_VALUE;
    }
    return why ? why : conclude(&now);
}
