#include "store/sql_private.h"

#include "base/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <unistd.h>

enum { BOOT_ID_SIZE = 64 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char boot_id[BOOT_ID_SIZE] = "unknown";

/* Of the kernel that runs: the same for every program and container of one host, another one after each of its starts. */
static void read_boot_id(void)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, boot_id, sizeof(boot_id) - 1);

    if (n > 0)
        boot_id[strcspn(boot_id, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

static void tell_boot_id(sqlite3_context *context, int n, sqlite3_value **values)
{
    sqlite3_result_text(context, boot_id, -1, SQLITE_STATIC);
}

static void tell_boot_ms(sqlite3_context *context, int n, sqlite3_value **values)
{
    sqlite3_result_int64(context, clock_boot_ms());
}

int sql_add_clock(struct sqlite3 *db)
{
    int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY, code;

    pthread_once(&once, read_boot_id);
    code = sqlite3_create_function(db, "boot_id", 0, flags | SQLITE_DETERMINISTIC, NULL, tell_boot_id, NULL, NULL);
    return code == SQLITE_OK ? sqlite3_create_function(db, "boot_ms", 0, flags, NULL, tell_boot_ms, NULL, NULL) : code;
}
