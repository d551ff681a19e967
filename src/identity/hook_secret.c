#include "identity/hook_secret.h"

#include "base/base64.h"
#include "identity/state.h"

void identity_hook_secret(const struct identity *id, const char *app_id, char ret[HOOK_SECRET_SIZE])
{
    unsigned char key[HASH_BYTES];
    struct buf text, out;

    buf_init(&text, 256);
    buf_init(&out, HOOK_SECRET_SIZE);
    buf_printf(&text, "hook secret\n%s", app_id);
    hash_hmac_sha256(buf_slice(&text), (struct slice){ (const char *)id->keys->seal, SEAL_KEY_BYTES }, key);
    buf_add_str(&out, "whsec_");
    base64_encode(&out, (struct slice){ (const char *)key, sizeof(key) });
    memcpy(ret, buf_str(&out), HOOK_SECRET_SIZE);
    secret_wipe(key, sizeof(key));
    buf_clear(&text);
    buf_clear(&out);
}
