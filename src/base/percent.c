#include "base/percent.h"

#include "base/utf8.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that the escape at `at` stands for; -1 when there is no escape. */
static int escaped_byte(struct slice in, size_t at)
{
    int high = at + 1 < in.n ? hex_digit(in.p[at + 1]) : -1;
    int low = at + 2 < in.n ? hex_digit(in.p[at + 2]) : -1;

    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static int refuse(struct err *e, const char *why)
{
    return err_set(e, -EINVAL, "VALIDATION_ERROR", "The URL is not encoded correctly: %s", why);
}

int percent_decode(struct arena *a, struct slice in, bool plus_is_space, char **ret, struct err *e)
{
    char *text = arena_alloc(a, in.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < in.n; i++) {
        int byte = (unsigned char)in.p[i];
        if (byte == '%') {
            byte = escaped_byte(in, i);
            i += 2;
        } else if (byte == '+' && plus_is_space) {
            byte = ' ';
        }
        if (byte < 0)
            return refuse(e, "a percent sign must be followed by two hexadecimal digits");
        if (byte == 0)
            return refuse(e, "it must not contain a NUL character");
        text[n++] = (char)byte;
    }
    if (!utf8_is_valid((struct slice){ text, n }))
        return refuse(e, "it must be UTF-8");
    text[n] = '\0';
    *ret = text;
    return 0;
}

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

void percent_encode(struct buf *out, struct slice in)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < in.n; i++) {
        unsigned char byte = (unsigned char)in.p[i];
        if (is_unreserved(in.p[i]))
            buf_add_char(out, in.p[i]);
        else
            buf_add(out, (char[]){ '%', digits[byte >> 4], digits[byte & 15] }, 3);
    }
}
