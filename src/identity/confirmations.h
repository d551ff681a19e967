/* Fresh confirmations of browser sessions: a session may change what runs only within five minutes after the person
 * confirmed the session in a terminal.
 *
 * A session without a confirmation is given a code, which the person types into a terminal (`hearth confirm CODE`): a
 * thief of the session has no terminal. Confirmations are in memory, so a restart forgets all of them. Locked inside;
 * any worker; the time (clock_mono_ms()) is an argument.
 */
#pragma once

#include "base/hash.h"
#include "base/limits.h"

#include <pthread.h>

enum { CONFIRM_CODE_SIZE = 10 /* "K7QF-2M9D" */, CONFIRM_WHAT_SIZE = 200 };

struct confirmation { /* session "": a free place */
    char session[HASH_HEX_SIZE], code[CONFIRM_CODE_SIZE], what[CONFIRM_WHAT_SIZE];
    int64_t code_until_ms, until_ms;
};

struct confirmations {
    pthread_mutex_t mutex;
    struct confirmation items[LIMIT_CONFIRMATIONS];
};

void confirmations_init(struct confirmations *c);
void confirmations_clear(struct confirmations *c);
/* How long the session may still change what runs; 0: it may not. */
int64_t confirmations_left_ms(struct confirmations *c, const char *session, int64_t now_ms);
/* The code that confirms the session; the code stays the same until it is used or is five minutes old. what: the
 * sentence shown in the terminal. */
void confirmations_request(struct confirmations *c, const char *session, const char *what, int64_t now_ms,
                           char ret_code[CONFIRM_CODE_SIZE]);
/* Uses the code up. False: no such code is in force. Case, blanks and the dash of the code do not matter. */
bool confirmations_give(struct confirmations *c, const char *code, int64_t now_ms, char ret_what[CONFIRM_WHAT_SIZE]);
void confirmations_forget(struct confirmations *c, const char *session);
