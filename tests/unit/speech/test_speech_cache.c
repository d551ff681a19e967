#include "speech/cache.h"

#include "base/limits.h"
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { N_AUDIO = 1000, N_THREADS = 4, N_ROUNDS = 2000, ROOM = 16 << 10 };

static const struct speech_frame_done done = { 16000, N_AUDIO / 2 };

static void key_of(size_t i, unsigned char key[HASH_BYTES])
{
    hash_blake2b((struct slice){ (const char *)&i, sizeof(i) }, SLICE_LIT(""), key);
}

/* Every audio is of its number, so that another one's would be noticed. */
static void keep(struct speech_cache *c, size_t i, size_t max_bytes)
{
    unsigned char key[HASH_BYTES];
    char audio[N_AUDIO];

    key_of(i, key);
    memset(audio, (int)(i % 251), sizeof(audio));
    speech_cache_keep(c, key, (struct slice){ audio, sizeof(audio) }, &done, max_bytes);
}

static bool has(struct speech_cache *c, size_t i)
{
    unsigned char key[HASH_BYTES];
    struct speech_frame_done found = { 0 };
    struct buf audio;
    bool is_there;

    key_of(i, key);
    buf_init(&audio, ROOM);
    is_there = speech_cache_find(c, key, &audio, &found);
    assert_int_equal(audio.n, is_there ? N_AUDIO : 0);
    for (size_t k = 0; k < audio.n; k++)
        assert_int_equal((unsigned char)audio.p[k], i % 251);
    assert_int_equal(found.rate, is_there ? done.rate : 0);
    buf_clear(&audio);
    return is_there;
}

static void the_one_used_longest_ago_leaves_first(void **state)
{
    struct speech_cache *c = speech_cache_new();
    size_t n_left = 0;

    for (size_t i = 0; i < 8; i++)
        keep(c, i, ROOM);
    assert_true(has(c, 0));
    for (size_t i = 8; i < 20; i++)
        keep(c, i, ROOM);
    assert_true(has(c, 0));
    assert_false(has(c, 1));
    assert_true(has(c, 19));
    for (size_t i = 0; i < 20; i++)
        n_left += has(c, i);
    assert_true(n_left * N_AUDIO <= ROOM && (n_left + 2) * N_AUDIO > ROOM);
    keep(c, 19, ROOM); /* kept anew, not twice */
    assert_true(has(c, 19));
    speech_cache_trim(c, 3 * N_AUDIO);
    assert_true(has(c, 19));
    assert_false(has(c, 2));
    speech_cache_trim(c, 0);
    assert_false(has(c, 19));
    speech_cache_free(c);
}

static void what_is_larger_than_the_cache_is_not_kept(void **state)
{
    struct speech_cache *c = speech_cache_new();

    keep(c, 1, ROOM);
    keep(c, 2, N_AUDIO - 1);
    keep(c, 2, N_AUDIO);
    assert_false(has(c, 2));
    assert_true(has(c, 1));
    keep(c, 2, N_AUDIO + 200);
    assert_true(has(c, 2));
    assert_false(has(c, 1));
    speech_cache_free(c);
}

static void whatever_decides_about_the_samples_is_in_the_key(void **state)
{
    const struct speech_cache_what usual = { SLICE_LIT("ab"), "c", "d", "e", "f", 1, SPEECH_WAV };
    struct speech_cache_what others[9];
    unsigned char first[HASH_BYTES], second[HASH_BYTES];

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        others[i] = usual;
    others[0].text = SLICE_LIT("a");
    others[1].caller = "x";
    others[2].engine = "x";
    others[3].version = "x";
    others[4].voice = "x";
    others[5].speed = 1.001;
    others[6].format = SPEECH_MP3;
    others[7].text = SLICE_LIT("abc"); /* the same bytes, divided otherwise */
    others[7].caller = "";
    others[8].caller = "cd";
    others[8].engine = "";
    speech_cache_key(&usual, first);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        speech_cache_key(&others[i], second);
        assert_memory_not_equal(first, second, HASH_BYTES);
    }
    speech_cache_key(&usual, second);
    assert_memory_equal(first, second, HASH_BYTES);
}

static void *use(void *cache)
{
    for (size_t i = 0; i < N_ROUNDS; i++) {
        keep(cache, i % 40, ROOM);
        (void)has(cache, (i * 7) % 40);
        if (i % 100 == 0)
            speech_cache_trim(cache, ROOM / 2);
    }
    return NULL;
}

static void threads_may_use_it_together(void **state)
{
    struct speech_cache *c = speech_cache_new();
    pthread_t threads[N_THREADS];

    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(thread_start(&threads[i], "cache", use, c), 0);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    speech_cache_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_used_longest_ago_leaves_first),
        cmocka_unit_test(what_is_larger_than_the_cache_is_not_kept),
        cmocka_unit_test(whatever_decides_about_the_samples_is_in_the_key),
        cmocka_unit_test(threads_may_use_it_together),
    };

    if (hash_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
