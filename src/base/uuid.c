#include "base/uuid.h"
#include "base/hash.h"

#include <stdio.h>

/* RFC 9562, section 4: the variant is 10x in octet 8, the version the high half of octet 6. */
static void format_uuid(unsigned char bytes[16], unsigned version, char out[UUID_SIZE])
{
    char hex[33];

    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | version << 4);
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
    hash_hex(bytes, 16, hex);
    snprintf(out, UUID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

void uuid_v4(char out[UUID_SIZE])
{
    unsigned char bytes[16];

    random_bytes(bytes, sizeof(bytes));
    format_uuid(bytes, 4, out);
}

void uuid_of_text(struct slice text, char out[UUID_SIZE])
{
    unsigned char hash[HASH_BYTES];

    hash_blake2b(text, (struct slice){ 0 }, hash);
    format_uuid(hash, 8, out);
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool uuid_is_valid(struct slice s)
{
    if (s.n != UUID_LEN)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (is_dash ? s.p[i] != '-' : !is_hex(s.p[i]))
            return false;
    }
    return true;
}
