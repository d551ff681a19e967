#include "face/password.h"

#include "base/limits.h"

#include <ctype.h>
#include <pthread.h>
#include <sodium.h>
#include <string.h>

enum { PASSES = 2, LOCAL_CHARS = 64, LABEL_CHARS = 63 };
#define MEMORY MIB(19)

_Static_assert(PASSWORD_HASH_SIZE == crypto_pwhash_STRBYTES, "the size of a hash");

/* ---- only a few at a time ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static int n_running;

static void enter(void)
{
    pthread_mutex_lock(&lock);
    while (n_running >= LIMIT_FACE_HASHES)
        pthread_cond_wait(&freed, &lock);
    n_running++;
    pthread_mutex_unlock(&lock);
}

static void leave(void)
{
    pthread_mutex_lock(&lock);
    n_running--;
    pthread_cond_signal(&freed);
    pthread_mutex_unlock(&lock);
}

/* ---- passwords ---- */

int password_check(const char *password, struct err *e)
{
    size_t n = strlen(password);

    if (n < LIMIT_FACE_PASSWORD_MIN)
        return err_set(e, -EINVAL, "WEAK_PASSWORD", "Password should be at least %d characters.",
                       LIMIT_FACE_PASSWORD_MIN);
    if (n > LIMIT_FACE_PASSWORD)
        return err_add_field(e, "password", "must be at most %d bytes", LIMIT_FACE_PASSWORD);
    return 0;
}

int password_hash(const char *password, char out[PASSWORD_HASH_SIZE], struct err *e)
{
    int r;

    enter();
    r = crypto_pwhash_str(out, password, strlen(password), PASSES, MEMORY);
    leave();
    return r == 0 ? 0 : err_set(e, -ENOMEM, "OUT_OF_MEMORY", "There is no memory for hashing a password now.");
}

/* crypto_pwhash_str_verify() reports a lack of memory as a wrong password; errno tells it apart. */
static int verify(const char *hash, const char *password, struct err *e)
{
    int r;

    enter();
    errno = 0;
    r = crypto_pwhash_str_verify(hash, password, strlen(password));
    r = r == 0 ? 1 : errno == ENOMEM ? -ENOMEM : 0;
    leave();
    return r < 0 ? err_set(e, r, "OUT_OF_MEMORY", "There is no memory for checking a password now.") : r;
}

int password_verify(const char *hash, const char *password, struct err *e)
{
    char made[PASSWORD_HASH_SIZE];

    if (hash)
        return verify(hash, password, e);
    return password_hash(password, made, e);
}

/* ---- e-mail addresses ---- */

static bool is_local_part(const char *p, size_t n)
{
    if (n == 0 || n > LOCAL_CHARS)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)p[i]) && !strchr(".!#$%&'*+/=?^_`{|}~-", p[i]))
            return false;
    return true;
}

static bool is_label(const char *p, size_t n)
{
    if (n == 0 || n > LABEL_CHARS || p[0] == '-' || p[n - 1] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)p[i]) && p[i] != '-')
            return false;
    return true;
}

static bool is_domain(const char *p)
{
    for (;;) {
        size_t n = strcspn(p, ".");

        if (!is_label(p, n))
            return false;
        if (p[n] == '\0')
            return true;
        p += n + 1;
    }
}

static bool is_ascii(const char *p)
{
    while (*p && (unsigned char)*p < 128)
        p++;
    return *p == '\0';
}

int email_normalize(char *email, struct err *e)
{
    const char *at = strrchr(email, '@');

    if (!at || strlen(email) > LIMIT_FACE_EMAIL || !is_ascii(email) || !is_local_part(email, (size_t)(at - email)) ||
        !is_domain(at + 1))
        return err_set(e, -EINVAL, "VALIDATION_ERROR", "Unable to validate email address: invalid format");
    for (char *p = email; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return 0;
}
