#include "base/uuid.h"
#include "base/hash.h"
#include "base/secret.h"

#include <string.h>

/* RFC 9562, section 4: the variant is 10x in octet 8, the version the high half of octet 6. */
static void format_uuid(unsigned char bytes[16], unsigned version, char out[UUID_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    char *to = out;

    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | version << 4);
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    *to = '\0';
}

/* The kernel is asked for the bytes of many uuids at once; no byte is given out twice. */
static void take_random(unsigned char bytes[16])
{
    static _Thread_local unsigned char kept[32 * 16];
    static _Thread_local size_t n_kept;

    if (n_kept == 0) {
        random_bytes(kept, sizeof(kept));
        n_kept = sizeof(kept);
    }
    n_kept -= 16;
    memcpy(bytes, kept + n_kept, 16);
    secret_wipe(kept + n_kept, 16);
}

void uuid_v4(char out[UUID_SIZE])
{
    unsigned char bytes[16];

    take_random(bytes);
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
