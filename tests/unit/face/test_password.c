/* Passwords: how many are hashed at the same time. The test's own crypto_pwhash_str() takes the place of libsodium's
 * and keeps each caller inside until the gate opens. */
#include "face/password.h"
#include "base/limits.h"
#include <pthread.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { N_THREADS = 3 * LIMIT_FACE_HASHES };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_called, n_inside, n_most, n_done; /* guarded by lock */
    bool is_open;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

int crypto_pwhash_str(char out[crypto_pwhash_STRBYTES], const char *const password, unsigned long long n,
                      unsigned long long passes, size_t memory)
{
    pthread_mutex_lock(&gate.lock);
    gate.n_inside++;
    gate.n_most = MAX(gate.n_most, gate.n_inside);
    pthread_cond_broadcast(&gate.changed);
    while (!gate.is_open)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.n_inside--;
    pthread_mutex_unlock(&gate.lock);
    snprintf(out, crypto_pwhash_STRBYTES, "hash");
    return 0;
}

static void *hash_one(void *arg)
{
    char hash[PASSWORD_HASH_SIZE];

    pthread_mutex_lock(&gate.lock);
    gate.n_called++;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    if (password_hash("secret password", hash, NULL) < 0)
        return NULL;
    pthread_mutex_lock(&gate.lock);
    gate.n_done++;
    pthread_mutex_unlock(&gate.lock);
    return NULL;
}

static void no_more_passwords_than_the_limit_are_hashed_at_the_same_time(void **state)
{
    pthread_t threads[N_THREADS];

    for (int i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, hash_one, NULL);
    pthread_mutex_lock(&gate.lock);
    while (gate.n_called < N_THREADS || gate.n_inside < LIMIT_FACE_HASHES)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.is_open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(gate.n_most, LIMIT_FACE_HASHES);
    assert_int_equal(gate.n_done, N_THREADS);
}

static void a_password_has_six_to_seventy_two_bytes(void **state)
{
    char text[LIMIT_FACE_PASSWORD + 2];
    struct err e = { 0 };

    memset(text, 'x', sizeof(text));
    text[LIMIT_FACE_PASSWORD + 1] = '\0';
    assert_int_equal(password_check(text, &e), -EINVAL);
    assert_string_equal(e.code, "VALIDATION_ERROR");
    text[LIMIT_FACE_PASSWORD] = '\0';
    assert_int_equal(password_check(text, NULL), 0);
    text[LIMIT_FACE_PASSWORD_MIN] = '\0';
    assert_int_equal(password_check(text, NULL), 0);
    text[LIMIT_FACE_PASSWORD_MIN - 1] = '\0';
    assert_int_equal(password_check(text, &e), -EINVAL);
    assert_string_equal(e.code, "WEAK_PASSWORD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_passwords_than_the_limit_are_hashed_at_the_same_time),
        cmocka_unit_test(a_password_has_six_to_seventy_two_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
