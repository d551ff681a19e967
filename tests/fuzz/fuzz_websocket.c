/* The bytes of a peer after the upgrade, in pieces whose size the first byte chooses. Messages keep their limits;
 * pieces do not change the messages; answers are whole frames. The second byte stops the reader after each message, and
 * makes it that of a client: then the bytes are a server's.
 * Whether the reason of a close frame is UTF-8 wslay 1.1.1 finds out differently for pieces, so the ends are not
 * compared.
 */
#include "base/limits.h"
#include "base/utf8.h"
#include "base/websocket_frames.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct heard {
    struct buf text; /* all messages, each after its length and kind */
    bool stops;
    enum websocket_side side;
};

static bool on_message(void *arg, bool is_binary, struct slice message)
{
    struct heard *heard = arg;

    assert(message.n <= LIMIT_SOCKET_MESSAGE);
    assert(is_binary || utf8_is_valid(message));
    buf_printf(&heard->text, "%d %zu ", is_binary, message.n);
    buf_add_slice(&heard->text, message);
    return !heard->stops;
}

/* Frames of a client are masked, those of a server are not. But for messages they are short. */
static void check_answers(enum websocket_side side, struct slice answers)
{
    bool is_masked = side == WEBSOCKET_CLIENT;

    while (answers.n > 0) {
        size_t length;

        assert(answers.n >= 2 && ((unsigned char)answers.p[1] >> 7) == is_masked);
        length = ((unsigned char)answers.p[1] & 0x7f) + (is_masked ? 4 : 0);
        assert(length <= 125 + 4 && answers.n >= 2 + length);
        answers = (struct slice){ answers.p + 2 + length, answers.n - 2 - length };
    }
}

static void read_all(struct slice rest, size_t piece, struct heard *heard)
{
    const struct websocket_reader_config config = { .side = heard->side, .on_message = on_message, .arg = heard };
    struct websocket_reader *r = websocket_reader_new(&config);
    struct buf answers;

    buf_init(&heard->text, 64 << 20);
    buf_init(&answers, 64 << 20);
    while (rest.n > 0 && !websocket_reader_is_over(r)) {
        size_t given = MIN(piece, rest.n), used = websocket_reader_feed(r, (struct slice){ rest.p, given }, &answers);

        assert(used <= given);
        rest = (struct slice){ rest.p + used, rest.n - used };
        websocket_reader_go_on(r);
    }
    check_answers(heard->side, buf_slice(&answers));
    buf_clear(&answers);
    websocket_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct heard whole = { 0 }, pieces = { 0 };
    struct slice text;

    if (n < 2)
        return 0;
    text = (struct slice){ (const char *)bytes + 2, n - 2 };
    pieces.stops = bytes[1] & 1;
    whole.side = pieces.side = bytes[1] & 2 ? WEBSOCKET_CLIENT : WEBSOCKET_SERVER;
    read_all(text, text.n, &whole);
    read_all(text, (size_t)bytes[0] % 32 + 1, &pieces);
    assert(slice_eq(buf_slice(&whole.text), buf_slice(&pieces.text)));
    buf_clear(&whole.text);
    buf_clear(&pieces.text);
    return 0;
}
