/* Under ThreadSanitizer, which takes ten times as long, a test of many rows takes a tenth of them: races show among few
 * rows as well, and what depends on their number is tested under ASan. A test of a size at its limit is skipped.
 *
 *     enum { N_STEPS = TENTH_UNDER_TSAN(1500) };
 */
#pragma once

#ifdef __SANITIZE_THREAD__
#define TENTH_UNDER_TSAN(n) ((n) / 10)
#define IS_UNDER_TSAN 1
#else
#define TENTH_UNDER_TSAN(n) (n)
#define IS_UNDER_TSAN 0
#endif
