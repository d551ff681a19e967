#include "identity/seal.h"

#include "base/hash.h"
#include "os/files.h"
#include <sodium.h>

_Static_assert(SEAL_KEY_BYTES == crypto_secretbox_KEYBYTES, "the key of secretbox");

static int make_key(const char *path, unsigned char ret_key[SEAL_KEY_BYTES], struct err *e)
{
    random_bytes(ret_key, SEAL_KEY_BYTES);
    return file_write(path, (struct slice){ (const char *)ret_key, SEAL_KEY_BYTES }, 0600, e);
}

int seal_load(const char *data_dir, unsigned char ret_key[SEAL_KEY_BYTES], struct err *e)
{
    AUTO(arena_freep) struct arena *a = arena_new();
    const char *path = arena_printf(a, "%s/master.key", data_dir);
    size_t n = 0;
    int r;

    r = file_read_into(path, ret_key, SEAL_KEY_BYTES, &n, NULL);
    if (r == -ENOENT)
        return make_key(path, ret_key, e);
    if (r < 0 && r != -EFBIG)
        return err_errno(e, -r, "reading %s", path);
    if (r == -EFBIG || n != SEAL_KEY_BYTES)
        return err_set(e, -EINVAL, "BAD_MASTER_KEY",
                       "%.300s is damaged: it must have %d bytes; restore it from a backup.", path, SEAL_KEY_BYTES);
    return 0;
}

void seal_bytes(const unsigned char key[SEAL_KEY_BYTES], struct slice plain, struct buf *out)
{
    char *to = buf_reserve(out, crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES + plain.n);
    unsigned char *nonce = (unsigned char *)to;

    if (!to)
        return;
    random_bytes(nonce, crypto_secretbox_NONCEBYTES);
    crypto_secretbox_easy(nonce + crypto_secretbox_NONCEBYTES, (const unsigned char *)plain.p, plain.n, nonce, key);
    out->n += crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES + plain.n;
}

int seal_open(const unsigned char key[SEAL_KEY_BYTES], struct slice sealed, struct arena *a, struct slice *ret,
              struct err *e)
{
    const unsigned char *nonce = (const unsigned char *)sealed.p;
    size_t around = crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES;
    char *plain;

    if (sealed.n < around)
        return err_set(e, -EBADMSG, "UNSEAL_FAILED", "A stored secret is damaged: give it again.");
    plain = arena_alloc(a, sealed.n - around + 1);
    if (crypto_secretbox_open_easy((unsigned char *)plain, nonce + crypto_secretbox_NONCEBYTES,
                                   sealed.n - crypto_secretbox_NONCEBYTES, nonce, key) != 0)
        return err_set(e, -EBADMSG, "UNSEAL_FAILED",
                       "A stored secret was sealed under another master.key: give it again.");
    *ret = (struct slice){ plain, sealed.n - around };
    return 0;
}
