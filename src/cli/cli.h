/* `hearth <command>`: tables of commands (cli/commands*.c), from which help, man page and shell completion are
 * generated.
 *
 * Nearly every command is one management request, sent over <data>/hearth.sock when a service runs (cli/client.h,
 * libcurl), else through service_open_offline(). Exit codes: 0 done, 1 failed (one sentence on standard error), 2 wrong
 * use or bad settings.
 */
#pragma once

int cli_main(int argc, char **argv);
