/* Ends a test that this machine cannot run, and says why. cmocka's skip() prints "not ok ... # SKIP", which Meson
 * counts as a failure. */
#pragma once

#define SKIP_TEST(why)                                                                                                 \
    do {                                                                                                               \
        print_message("# skipped: %s\n", why);                                                                         \
        return;                                                                                                        \
    } while (0)
