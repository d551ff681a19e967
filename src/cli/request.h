/* The work of nearly every command: send the row's request, show the answer. The special commands use the parts. */
#pragma once

#include "cli/client.h"
#include "cli/command.h"

/* "/api/keys/{0}" with the command's arguments, percent-encoded. */
char *cli_fill_path(const struct cli *cli, const char *pattern);
/* "limit={--limit}&app={0}": parameters whose value was not given are left out. */
char *cli_fill_query(struct cli *cli, const char *pattern);
/* Opens the client on first use. */
int cli_client(struct cli *cli, struct client **ret, struct err *e) MUST_CHECK;
int cli_send(struct cli *cli, const struct client_request *request, struct client_reply *ret, struct err *e) MUST_CHECK;
int cli_get(struct cli *cli, const char *path, struct client_reply *ret, struct err *e) MUST_CHECK;

/* The object that the row's body function fills, as JSON in the arena. */
struct slice cli_write_body(struct cli *cli);
/* Sends the row's request and shows the answer. */
int cli_run_request(struct cli *cli, struct err *e) MUST_CHECK;
/* Shows the answer in the row's form: JSON, table, object or sentence. */
void cli_show(struct cli *cli, struct json_value answer);
void cli_print_json(struct json_value value);
void cli_print_object(struct json_value object);
void cli_print_table(const struct cli *cli, struct json_value list, const struct cli_column *columns,
                     const char *empty);

/* Reads a file, or standard input for "-". */
int cli_read_file(struct cli *cli, const char *path, size_t max, struct slice *ret, struct err *e) MUST_CHECK;
/* The arguments as one text; what is piped into standard input follows after an empty line. NULL: neither is there.
 * -EINVAL BAD_USE when it is no UTF-8. */
int cli_read_text(struct cli *cli, size_t max, const char **ret, struct err *e) MUST_CHECK;
/* Replaces argument 0, when it is the beginning of one id of the command's `ids`, by that id. */
int cli_complete_id(struct cli *cli, struct err *e) MUST_CHECK;
/* The id of the app that an argument names by id or by name. */
int cli_app_id(struct cli *cli, const char *id_or_name, const char **ret, struct err *e) MUST_CHECK;
