/* Fresh confirmations of browser sessions: a session changes what runs only within five minutes after the person confirmed it in a terminal.
 *
 * A session that lacks one is given a code, which the person types into a terminal (`hearth confirm CODE`): whoever stole the session has no
 * terminal. In memory, so a restart forgets them all. Locked inside; any worker; the time (clock_mono_ms()) is an argument.
 */
#pragma once

#include "base/hash.h"
#include "base/limits.h"

#include <pthread.h>

enum { CONFIRM_CODE_SIZE = 10 /* "K7QF-2M9D" */, CONFIRM_WHAT_SIZE = 200 };

struct confirmation {                   /* session "": a free place */
    char session[HASH_HEX_SIZE], code[CONFIRM_CODE_SIZE], what[CONFIRM_WHAT_SIZE];
    int64_t code_until_ms, until_ms;
};

struct confirmations {
    pthread_mutex_t mutex;
    struct confirmation items[LIMIT_CONFIRMATIONS];
};

void confirmations_init(struct confirmations *c);
void confirmations_clear(struct confirmations *c);
/* How long the session may go on changing what runs; 0: not at all. */
int64_t confirmations_left_ms(struct confirmations *c, const char *session, int64_t now_ms);
/* The code that confirms the session; the same one until it is used or five minutes old. what: the sentence shown in the terminal. */
void confirmations_ask(struct confirmations *c, const char *session, const char *what, int64_t now_ms, char ret_code[CONFIRM_CODE_SIZE]);
/* Uses the code up. False: there is none such. Case, blanks and the dash of the code do not matter. */
bool confirmations_give(struct confirmations *c, const char *code, int64_t now_ms, char ret_what[CONFIRM_WHAT_SIZE]);
void confirmations_forget(struct confirmations *c, const char *session);
