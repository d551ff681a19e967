#include "http/target.h"
#include "base/percent.h"
#include "base/utf8.h"

#include <string.h>
#include <strings.h>

static bool has_control(const char *text)
{
    bool has = false;

    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        has |= *c < 0x20 || *c == 0x7f;
    return has;
}

/* RFC 3986 section 3.3, and "..;", which some servers treat as "..". */
static bool is_dot_segment(const char *segment, size_t n)
{
    const char *parameter = memchr(segment, ';', n);

    if (parameter)
        n = (size_t)(parameter - segment);
    return (n == 1 && segment[0] == '.') || (n == 2 && segment[0] == '.' && segment[1] == '.');
}

static bool has_dot_segment(const char *path)
{
    while (*path) {
        const char *segment = path + 1, *end = strchrnul(segment, '/');

        if (is_dot_segment(segment, (size_t)(end - segment)))
            return true;
        path = end;
    }
    return false;
}

static bool has_escaped_backslash(const char *path)
{
    for (const char *at = strchr(path, '%'); at; at = strchr(at + 1, '%'))
        if (strncasecmp(at, "%5c", 3) == 0)
            return true;
    return false;
}

/* Position in the decoded path of the first slash that was escaped; 0: none. */
static size_t find_escaped_slash(const char *path)
{
    size_t n = 0;

    for (const char *at = path; *at; at += *at == '%' ? strnlen(at, 3) : 1, n++)
        if (strncasecmp(at, "%2f", 3) == 0)
            return n;
    return 0;
}

static enum http_refusal decode_path(struct arena *a, char *path, const char **ret)
{
    char *decoded = path;

    if (strchr(path, '\\') || has_escaped_backslash(path))
        return REFUSE_PATH;
    if (strchr(path, '%') && percent_decode(a, slice_of(path), false, &decoded, NULL) < 0)
        return REFUSE_PATH;
    if (!utf8_is_valid(slice_of(decoded)) || has_control(decoded) || has_dot_segment(decoded))
        return REFUSE_PATH;
    *ret = decoded;
    return REFUSE_NONE;
}

/* Removes scheme and authority from an absolute-form target. */
static enum http_refusal take_authority(char **target, const char **ret_authority)
{
    static char root[] = "/";
    char *authority = *target + strlen("http://");
    size_t n = strcspn(authority, "/?");

    if (strncasecmp(*target, "http://", 7) != 0 || n == 0 || authority[n] == '?')
        return REFUSE_TARGET;
    *target = authority[n] ? authority + n : root;
    memmove(authority - 1, authority, n); /* makes room for the NUL before the path */
    authority[n - 1] = '\0';
    *ret_authority = authority - 1;
    return REFUSE_NONE;
}

enum http_refusal http_target_parse(struct arena *a, char *target, struct http_request *ret, const char **ret_authority)
{
    enum http_refusal why;
    char *query;

    *ret_authority = NULL;
    if (has_control(target) || strchr(target, '#'))
        return REFUSE_TARGET;
    if (target[0] != '/') {
        why = take_authority(&target, ret_authority);
        if (why)
            return why;
    }
    query = strchr(target, '?');
    if (query)
        *query++ = '\0';
    ret->query = query ? query : "";
    ret->escaped_slash_at = find_escaped_slash(target);
    return decode_path(a, target, &ret->path);
}
