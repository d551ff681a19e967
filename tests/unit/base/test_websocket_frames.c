#include "base/websocket_frames.h"
#include "base/limits.h"
#include "base/websocket_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

struct heard {
    size_t n, n_bytes;
    bool stops;
};

static bool on_message(void *arg, bool is_binary, struct slice message)
{
    struct heard *heard = arg;

    heard->n++;
    heard->n_bytes += message.n;
    return !heard->stops;
}

/* A frame of a client, its mask all zero. */
static void add_frame(struct buf *out, unsigned head, size_t n)
{
    const char mask[4] = { 0 };

    buf_add_char(out, (char)head);
    if (n < 126) {
        buf_add_char(out, (char)(0x80 | n));
    } else {
        buf_add_char(out, (char)(0x80 | (n < 65536 ? 126 : 127)));
        for (int shift = n < 65536 ? 8 : 56; shift >= 0; shift -= 8)
            buf_add_char(out, (char)(n >> shift));
    }
    buf_add(out, mask, sizeof(mask));
    for (size_t i = 0; i < n; i++)
        buf_add_char(out, 'x');
}

static unsigned feed(struct heard *heard, struct buf *bytes)
{
    const struct websocket_reader_config config = { .on_message = on_message, .arg = heard };
    struct websocket_reader *r = websocket_reader_new(&config);
    struct buf answers;
    unsigned code = 0;

    buf_init(&answers, MIB(1));
    websocket_reader_feed(r, buf_slice(bytes), &answers);
    if (websocket_reader_is_over(r))
        code = answers.n >= 4 ? (unsigned)(unsigned char)answers.p[2] << 8 | (unsigned char)answers.p[3] : 1;
    buf_clear(&answers);
    buf_clear(bytes);
    websocket_reader_free(r);
    return code;
}

static void a_message_has_its_limit_of_bytes(void **state)
{
    struct heard heard = { 0 };
    struct buf bytes;

    buf_init(&bytes, MIB(16));
    add_frame(&bytes, 0x81, LIMIT_SOCKET_MESSAGE);
    assert_int_equal(feed(&heard, &bytes), 0);
    assert_int_equal(heard.n_bytes, LIMIT_SOCKET_MESSAGE);
    add_frame(&bytes, 0x81, LIMIT_SOCKET_MESSAGE + 1);
    assert_int_equal(feed(&heard, &bytes), WEBSOCKET_TOO_BIG);
    add_frame(&bytes, 0x01, LIMIT_SOCKET_MESSAGE);
    add_frame(&bytes, 0x80, 1);
    assert_int_equal(feed(&heard, &bytes), WEBSOCKET_TOO_BIG);
    assert_int_equal(heard.n, 1);
}

static void a_message_has_its_limit_of_frames(void **state)
{
    for (int extra = 0; extra < 2; extra++) {
        struct heard heard = { 0 };
        struct buf bytes;

        buf_init(&bytes, MIB(1));
        add_frame(&bytes, 0x01, 1);
        for (int i = 0; i < LIMIT_SOCKET_FRAGMENTS - 2 + extra; i++)
            add_frame(&bytes, 0x00, 0);
        add_frame(&bytes, 0x80, 1);
        assert_int_equal(feed(&heard, &bytes), extra ? WEBSOCKET_POLICY : 0);
        assert_int_equal(heard.n, 1 - extra);
    }
}

static void a_reader_that_was_stopped_goes_on(void **state)
{
    struct heard heard = { .stops = true };
    const struct websocket_reader_config config = { .on_message = on_message, .arg = &heard };
    struct websocket_reader *r = websocket_reader_new(&config);
    struct buf bytes, answers;
    size_t used;

    buf_init(&bytes, MIB(1));
    buf_init(&answers, KIB(1));
    for (int i = 0; i < 100; i++)
        add_frame(&bytes, 0x82, 125 * 40);
    used = websocket_reader_feed(r, buf_slice(&bytes), &answers);
    assert_true(used < bytes.n);
    assert_int_equal(websocket_reader_feed(r, buf_slice(&bytes), &answers), 0);
    while (used < bytes.n && !websocket_reader_is_over(r)) {
        websocket_reader_go_on(r);
        used += websocket_reader_feed(r, (struct slice){ bytes.p + used, bytes.n - used }, &answers);
    }
    assert_int_equal(heard.n, 100);
    assert_int_equal(answers.n, 0);
    websocket_reader_free(r);
    buf_clear(&bytes);
    buf_clear(&answers);
}

static void written_frames_have_the_lengths_of_the_standard(void **state)
{
    static const struct {
        size_t n, head;
    } cases[] = { { 0, 2 }, { 125, 2 }, { 126, 4 }, { 65535, 4 }, { 65536, 10 } };
    char *payload = xcalloc(1, 65536);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buf out;

        buf_init(&out, MIB(1));
        websocket_write_message(&out, WEBSOCKET_SERVER, true, (struct slice){ payload, cases[i].n });
        assert_int_equal(out.n, cases[i].head + cases[i].n);
        assert_int_equal((unsigned char)out.p[0], 0x82);
        assert_int_equal(out.p[1] & 0x80, 0);
        buf_clear(&out);
    }
    free(payload);
}

static void the_reason_of_a_close_is_cut(void **state)
{
    char reason[LIMIT_SOCKET_CLOSE_REASON + 2] = { 0 };
    struct buf out;

    memset(reason, 'r', sizeof(reason) - 1);
    buf_init(&out, KIB(1));
    websocket_write_close(&out, WEBSOCKET_SERVER, WEBSOCKET_GOING_AWAY, reason);
    assert_int_equal(out.n, 4 + LIMIT_SOCKET_CLOSE_REASON);
    assert_int_equal((unsigned char)out.p[2] << 8 | (unsigned char)out.p[3], WEBSOCKET_GOING_AWAY);
    buf_clear(&out);
}

static unsigned code_of(struct websocket_reader *r, const struct buf *answers)
{
    char plain[2] = { 0 };

    if (!websocket_reader_is_over(r))
        return 0;
    assert_true(answers->n >= 8 && (answers->p[1] & 0x80)); /* masked: the payload follows the mask */
    for (size_t i = 0; i < 2; i++)
        plain[i] = (char)(answers->p[6 + i] ^ answers->p[2 + i]);
    return (unsigned)(unsigned char)plain[0] << 8 | (unsigned char)plain[1];
}

static void a_client_masks_what_a_server_reads_and_not_the_other_way_round(void **state)
{
    static const enum websocket_side sides[] = { WEBSOCKET_SERVER, WEBSOCKET_CLIENT };
    static const size_t sizes[] = { 0, 1, 125, 126, 4096, 65535, 65536, 300000 };
    char *payload = xcalloc(1, 300000);

    for (size_t i = 0; i < 300000; i++)
        payload[i] = (char)('a' + i % 26);
    for (size_t i = 0; i < 4 * ARRAY_SIZE(sizes); i++) {
        enum websocket_side writer = sides[i & 1], reader = sides[i >> 1 & 1];
        struct heard heard = { 0 };
        const struct websocket_reader_config config = { .side = reader, .on_message = on_message, .arg = &heard };
        struct websocket_reader *r = websocket_reader_new(&config);
        struct buf bytes, answers;

        buf_init(&bytes, MIB(1));
        buf_init(&answers, KIB(1));
        websocket_write_message(&bytes, writer, false, (struct slice){ payload, sizes[i / 4] });
        websocket_reader_feed(r, buf_slice(&bytes), &answers);
        assert_int_equal(heard.n, writer != reader);
        assert_int_equal(websocket_reader_is_over(r), writer == reader);
        if (writer != reader)
            assert_int_equal(heard.n_bytes, sizes[i / 4]);
        websocket_reader_free(r);
        buf_clear(&bytes);
        buf_clear(&answers);
    }
    free(payload);
}

static void a_client_answers_pings_and_a_close_with_masked_frames(void **state)
{
    static const char ping[] = { (char)0x89, 2, 'h', 'i' }, end[] = { (char)0x88, 2, 3, (char)0xe8 };
    struct heard heard = { 0 };
    const struct websocket_reader_config config = { .side = WEBSOCKET_CLIENT, .on_message = on_message, .arg = &heard };
    struct websocket_reader *r = websocket_reader_new(&config);
    struct buf answers;

    buf_init(&answers, KIB(1));
    websocket_reader_feed(r, (struct slice){ ping, sizeof(ping) }, &answers);
    assert_int_equal(answers.n, 2 + 4 + 2);
    assert_int_equal((unsigned char)answers.p[0], 0x8a);
    assert_int_equal((unsigned char)answers.p[1], 0x82);
    assert_int_equal(answers.p[6] ^ answers.p[2], 'h');
    buf_reset(&answers);
    websocket_reader_feed(r, (struct slice){ end, sizeof(end) }, &answers);
    assert_int_equal(code_of(r, &answers), WEBSOCKET_NORMAL);
    buf_clear(&answers);
    websocket_reader_free(r);
}

/* RFC 6455 section 1.3. */
static void the_accept_of_a_key_is_that_of_the_standard(void **state)
{
    struct buf out;

    buf_init(&out, 64);
    assert_int_equal(websocket_accept(&out, "dGhlIHNhbXBsZSBub25jZQ==", NULL), 0);
    assert_string_equal(buf_str(&out), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    buf_clear(&out);
    websocket_key(&out);
    assert_int_equal(out.n, 24);
    buf_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_has_its_limit_of_bytes),
        cmocka_unit_test(a_message_has_its_limit_of_frames),
        cmocka_unit_test(a_reader_that_was_stopped_goes_on),
        cmocka_unit_test(written_frames_have_the_lengths_of_the_standard),
        cmocka_unit_test(the_reason_of_a_close_is_cut),
        cmocka_unit_test(a_client_masks_what_a_server_reads_and_not_the_other_way_round),
        cmocka_unit_test(a_client_answers_pings_and_a_close_with_masked_frames),
        cmocka_unit_test(the_accept_of_a_key_is_that_of_the_standard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
